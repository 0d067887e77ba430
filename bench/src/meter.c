/*
 * meter.c
 *	  What a command costs in a PostgreSQL cluster: time, CPU of all its processes,
 *	  largest private memory of any of them.
 *
 * meter POSTMASTER-PID COMMAND...   runs it; last line: wall=.. cpu_s=.. rss_mb=..
 * CPU is that of the postmaster and its children, those that ended included
 * (threads too: the kernel counts processes).  Memory is RssAnon, so shared
 * buffers do not count, looked at every 20 ms.  The command itself is not counted.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double
now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* utime, stime, cutime, cstime in ticks and the parent; 0 if the process is gone */
static int
read_stat(int pid, int *parent, long ticks[4])
{
	char		path[64],
				line[1024];
	FILE	   *f;
	char	   *s;
	size_t		n;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	n = fread(line, 1, sizeof(line) - 1, f);
	fclose(f);
	line[n] = '\0';
	s = strrchr(line, ')');
	return s && sscanf(s + 2, "%*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %ld %ld %ld %ld", parent,
					   &ticks[0], &ticks[1], &ticks[2], &ticks[3]) == 5;
}

static long
private_kb(int pid)
{
	char		path[64],
				line[256];
	FILE	   *f;
	long		kb = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "r");
	if (!f)
		return 0;
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kb) == 1)
			break;
	fclose(f);
	return kb;
}

/* CPU ticks of the cluster so far; *kb grows to the largest private memory seen */
static long
look(int postmaster, long *kb)
{
	DIR		   *dir = opendir("/proc");
	struct dirent *e;
	long		sum = 0;

	while (dir && (e = readdir(dir)) != NULL)
	{
		int			pid = atoi(e->d_name),
					parent;
		long		t[4];

		if (!isdigit((unsigned char) e->d_name[0]) || !read_stat(pid, &parent, t))
			continue;
		if (pid == postmaster)
			sum += t[0] + t[1] + t[2] + t[3];
		else if (parent == postmaster)
		{
			long		mine = private_kb(pid);

			sum += t[0] + t[1];
			if (mine > *kb)
				*kb = mine;
		}
	}
	if (dir)
		closedir(dir);
	return sum;
}

int
main(int argc, char **argv)
{
	int			postmaster,
				status = 0;
	long		before,
				after,
				kb = 0;
	double		start,
				wall;
	pid_t		child;

	if (argc < 3)
		return fprintf(stderr, "usage: meter POSTMASTER-PID COMMAND...\n"), 2;
	postmaster = atoi(argv[1]);
	before = look(postmaster, &kb);
	kb = 0;
	start = now();
	child = fork();
	if (child < 0)
		return perror("meter"), 1;
	if (child == 0)
	{
		execvp(argv[2], argv + 2);
		perror(argv[2]);
		_exit(127);
	}
	while (waitpid(child, &status, WNOHANG) == 0)
	{
		look(postmaster, &kb);
		usleep(20000);
	}
	wall = now() - start;
	usleep(50000);				/* the backend of a client that ended is gone a moment later */
	after = look(postmaster, &kb);
	fflush(stdout);
	printf("wall=%.3f cpu_s=%.2f rss_mb=%ld\n", wall, (double) (after - before) / sysconf(_SC_CLK_TCK), kb / 1024);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
