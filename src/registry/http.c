/*
 * http.c
 *	  HTTP requests to a schema registry through libcurl.
 *
 * The only file that sees curl.h.  The transfer runs in the backend's own loop, which
 * looks for interrupts; the threads in which libcurl resolves names are started with
 * all signals blocked, so that no handler of PostgreSQL's ever runs in them.
 */
#include "postgres.h"

#ifdef HAVE_CURL
#include <curl/curl.h>
#endif
#include <signal.h>

#include "miscadmin.h"
#include "registry/http.h"

#ifdef HAVE_CURL

/* No schema is longer than this. */
#define MAX_ANSWER (16 * 1024 * 1024)

/* An interrupt waits for at most this. */
#define WAIT_MS 50

typedef struct Transfer
{
	CURLM	   *multi;
	CURL	   *easy;
	struct curl_slist *headers;
	char	   *answer;			/* malloc'd: libcurl calls us back where no ERROR may pass */
	size_t		len;
	size_t		room;
	bool		too_long;
	char		error[CURL_ERROR_SIZE];
} Transfer;

static size_t
take_answer(char *data, size_t size, size_t n, void *arg)
{
	Transfer   *transfer = arg;
	size_t		len = size * n;

	if (transfer->len + len > MAX_ANSWER)
	{
		transfer->too_long = true;
		return 0;
	}
	if (transfer->len + len > transfer->room)
	{
		size_t		room = Max(transfer->room * 2, transfer->len + len);
		char	   *answer = realloc(transfer->answer, room);

		if (answer == NULL)
			return 0;
		transfer->answer = answer;
		transfer->room = room;
	}
	memcpy(transfer->answer + transfer->len, data, len);
	transfer->len += len;
	return len;
}

static void
out_of_memory(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_OUT_OF_MEMORY),
			 errmsg("out of memory")));
}

static void
add_header(Transfer *transfer, const char *header)
{
	struct curl_slist *headers = curl_slist_append(transfer->headers, header);

	if (headers == NULL)
		out_of_memory();
	transfer->headers = headers;
}

/* Whatever an option is refused for, going on without it is not safe. */
#define SETOPT(option, value) \
	do { \
		CURLcode	rc_ = curl_easy_setopt(easy, option, value); \
		if (rc_ != CURLE_OK) \
			ereport(ERROR, \
					(errcode(ERRCODE_FDW_ERROR), \
					 errmsg("could not prepare a request to the schema registry"), \
					 errdetail("%s: %s.", #option, curl_easy_strerror(rc_)))); \
	} while (0)

static void
prepare(Transfer *transfer, const RegistryAccess *access, const char *url, const char *json)
{
	CURL	   *easy = transfer->easy;

	SETOPT(CURLOPT_URL, url);
	SETOPT(CURLOPT_ERRORBUFFER, transfer->error);
	SETOPT(CURLOPT_WRITEFUNCTION, take_answer);
	SETOPT(CURLOPT_WRITEDATA, transfer);
	SETOPT(CURLOPT_NOSIGNAL, 1L);
	SETOPT(CURLOPT_USERAGENT, "upsert_kafka");
	SETOPT(CURLOPT_TIMEOUT_MS, (long) access->timeout_ms);
	SETOPT(CURLOPT_CONNECTTIMEOUT_MS, (long) access->timeout_ms);

	/* HTTP and HTTPS to the very host that the server's owner named, and nowhere else */
#if LIBCURL_VERSION_NUM >= 0x075500
	SETOPT(CURLOPT_PROTOCOLS_STR, "http,https");
#else
	SETOPT(CURLOPT_PROTOCOLS, (long) (CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
	SETOPT(CURLOPT_FOLLOWLOCATION, 0L);
	SETOPT(CURLOPT_PROXY, "");	/* not by variables of the server's environment */
	SETOPT(CURLOPT_NETRC, (long) CURL_NETRC_IGNORED);
	SETOPT(CURLOPT_SSL_VERIFYPEER, 1L);
	SETOPT(CURLOPT_SSL_VERIFYHOST, 2L);
#if LIBCURL_VERSION_NUM >= 0x075700
	/* leave a resolver that hangs behind instead of waiting for it */
	SETOPT(CURLOPT_QUICK_EXIT, 1L);
#endif
	if (access->ca_pem)
	{
#if LIBCURL_VERSION_NUM >= 0x074d00
		struct curl_blob blob = {(void *) access->ca_pem, strlen(access->ca_pem), CURL_BLOB_COPY};

		SETOPT(CURLOPT_CAINFO_BLOB, &blob);
#else
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("option \"registry_ca_pem\" needs libcurl 7.77 or newer")));
#endif
	}
	if (access->username)
	{
		SETOPT(CURLOPT_HTTPAUTH, (long) CURLAUTH_BASIC);
		SETOPT(CURLOPT_USERNAME, access->username);
		SETOPT(CURLOPT_PASSWORD, access->password ? access->password : "");
	}
	add_header(transfer, "Accept: application/vnd.schemaregistry.v1+json, application/json");
	if (access->token)
	{
		char	   *header = psprintf("Authorization: Bearer %s", access->token);

		add_header(transfer, header);
		explicit_bzero(header, strlen(header));
		pfree(header);
	}
	if (json)
	{
		add_header(transfer, "Content-Type: application/vnd.schemaregistry.v1+json");
		add_header(transfer, "Expect:");
		SETOPT(CURLOPT_POST, 1L);
		SETOPT(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t) strlen(json));
		SETOPT(CURLOPT_POSTFIELDS, json);
	}
	SETOPT(CURLOPT_HTTPHEADER, transfer->headers);
}

/* Let the transfer make what progress it can; threads begin in here. */
static CURLMcode
perform(Transfer *transfer, int *running)
{
	sigset_t	all;
	sigset_t	before;
	CURLMcode	rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = curl_multi_perform(transfer->multi, running);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc;
}

static int
run(Transfer *transfer, const RegistryAccess *access, const char *url)
{
	int			running = 1;
	CURLMsg    *message;
	CURLcode	result = CURLE_OK;
	long		status = 0;
	int			left;

	if (curl_multi_add_handle(transfer->multi, transfer->easy) != CURLM_OK)
		out_of_memory();
	for (;;)
	{
		CURLMcode	rc = perform(transfer, &running);

		if (rc == CURLM_OK && running > 0)
			rc = curl_multi_poll(transfer->multi, NULL, 0, WAIT_MS, NULL);
		CHECK_FOR_INTERRUPTS();
		if (rc != CURLM_OK)
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_FAILURE),
					 errmsg("schema registry of server \"%s\" cannot be asked", access->server_name),
					 errdetail("%s: %s.", url, curl_multi_strerror(rc))));
		if (running == 0)
			break;
	}
	while ((message = curl_multi_info_read(transfer->multi, &left)) != NULL)
	{
		if (message->msg == CURLMSG_DONE)
			result = message->data.result;
	}
	if (transfer->too_long)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_ERROR),
				 errmsg("schema registry of server \"%s\" answers with more than %d bytes", access->server_name, MAX_ANSWER),
				 errdetail("%s", url)));
	if (result != CURLE_OK)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("schema registry of server \"%s\" does not answer", access->server_name),
				 errdetail("%s: %s.", url, transfer->error[0] ? transfer->error : curl_easy_strerror(result)),
				 errhint("Check \"registry_url\" of the server.")));
	curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int) status;
}

static void
transfer_end(Transfer *transfer)
{
	if (transfer->multi && transfer->easy)
		curl_multi_remove_handle(transfer->multi, transfer->easy);
	if (transfer->easy)
		curl_easy_cleanup(transfer->easy);
	if (transfer->multi)
		curl_multi_cleanup(transfer->multi);
	curl_slist_free_all(transfer->headers);
	free(transfer->answer);
}

bool
registry_available(void)
{
	return true;
}

int
http_request(const RegistryAccess *access, const char *url, const char *json, StringInfo body)
{
	static bool initialized = false;
	Transfer   *transfer;
	volatile int status = 0;

	if (!initialized)
	{
		if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
			out_of_memory();
		initialized = true;
	}
	transfer = palloc0(sizeof(Transfer));
	PG_TRY();
	{
		transfer->multi = curl_multi_init();
		transfer->easy = curl_easy_init();
		if (transfer->multi == NULL || transfer->easy == NULL)
			out_of_memory();
		prepare(transfer, access, url, json);
		status = run(transfer, access, url);
		appendBinaryStringInfo(body, transfer->answer ? transfer->answer : "", (int) transfer->len);
	}
	PG_FINALLY();
	{
		transfer_end(transfer);
	}
	PG_END_TRY();
	pfree(transfer);
	return status;
}

#else							/* no libcurl */

bool
registry_available(void)
{
	return false;
}

int
http_request(const RegistryAccess *access, const char *url, const char *json, StringInfo body)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("upsert_kafka was built without libcurl, and cannot ask a schema registry"),
			 errhint("Install libcurl4-openssl-dev (or your system's package of that kind) and build again.")));
	return 0;
}

#endif
