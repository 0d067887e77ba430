/*
 * registry.h
 *	  A schema registry with Confluent's REST API: schemas by id, and registering them.
 *
 * Where it is and who asks is the server's and the user mapping's to say; what the
 * schemas mean is the formats'.  Nothing here knows Avro.
 */
#ifndef UK_REGISTRY_H
#define UK_REGISTRY_H

/* Strings are NULL where they are not given. */
typedef struct RegistryAccess
{
	const char *server_name;	/* for messages */
	const char *url;			/* http or https, without a slash at the end */
	const char *ca_pem;			/* certificates that are trusted; NULL: the system's */
	const char *username;		/* basic authentication .. */
	const char *password;
	const char *token;			/* .. or bearer */
	int			timeout_ms;		/* of one request */
} RegistryAccess;

typedef struct RegistrySchema
{
	const char *type;			/* "AVRO", "JSON", "PROTOBUF" */
	int			ntexts;
	const char **texts;			/* the schema, after all that it refers to */
	const char **names;			/* by which it refers to them: files that it
								 * imports, types; of itself NULL */
} RegistrySchema;

/* What a schema that is registered refers to */
typedef struct RegistryReference
{
	const char *name;			/* in the schema */
	const char *subject;
	int			version;
} RegistryReference;

/* Was the extension built with an HTTP client? */
extern bool registry_available(void);

/* "why not" of a URL that a server may not have; NULL: it may. */
extern const char *registry_url_problem(const char *url);

/*
 * How a text of a registry, or what a parser said of one, begins: for messages, in the
 * database encoding, palloc'd.  What is no UTF-8, and what other encodings may lack, is shown
 * as ?, because an error of conversion would be taken for the message's.
 */
extern char *registry_shown_text(const char *text);

/*
 * The schema of an id: asked for once per process, then cached (ids never change
 * their meaning).  Holds until the next call.  Interruptible.  ERROR class 08 where the
 * registry doesn't answer, or doesn't know the id; 28000 where it refuses the user.
 */
extern const RegistrySchema *registry_schema(const RegistryAccess *access, uint32 id);

/*
 * The latest schema of a subject, in CurrentMemoryContext, not cached; NULL if there is no
 * such subject.  Errors as above.
 */
extern const RegistrySchema *registry_latest_schema(const RegistryAccess *access, const char *subject);

/* The same of an id that may be none of the registry's: a guess. */
extern const RegistrySchema *registry_find_schema(const RegistryAccess *access, uint32 id);

/*
 * The id of a schema under a subject, which is registered if it is new.  Cached as
 * above.  ERROR HV000 where the registry refuses the schema, else as above.
 */
extern uint32 registry_register(const RegistryAccess *access, const char *subject, const char *schema);

/*
 * The same for a schema of another type than Avro, "PROTOBUF", that refers to others.
 * Texts are in UTF-8.
 */
extern uint32 registry_register_as(const RegistryAccess *access, const char *subject, const char *type,
								   const char *schema, int nreferences, const RegistryReference *references);

/*
 * The version that a schema has under its subject, where it is registered.  Cached; errors
 * as above.
 */
extern int	registry_version(const RegistryAccess *access, const char *subject, const char *type,
							 const char *schema, int nreferences, const RegistryReference *references);

/* The latest version of a subject, not cached; 0 if there is no such subject. */
extern int	registry_latest_version(const RegistryAccess *access, const char *subject);

/*
 * The id of a subject's latest schema, which is asked for each time.  ERROR HV000 if it is
 * of another type, else as above.
 */
extern uint32 registry_latest(const RegistryAccess *access, const char *subject, const char *type);

#endif							/* UK_REGISTRY_H */
