/*
 * fuzz_registry.h
 *	  A schema registry whose answers are given.
 */
#ifndef UK_FUZZ_REGISTRY_H
#define UK_FUZZ_REGISTRY_H

#include "shim.h"

#include "registry/registry.h"

extern const RegistryAccess fuzz_access;

/*
 * The answers to the next requests, one after the other, or the schemas of type 'schemas'
 * that they hold; none: those of fuzz_schemas by their id.
 */
extern void fuzz_registry_answers(int n, const char *const *answers, const Size *lens, const char *schemas);

/* From the first answer on again */
extern void fuzz_registry_again(void);

/* Forget what the process has cached, and count what jansson holds. */
extern void fuzz_registry_forget(void);
extern long fuzz_json_blocks(void);
extern void fuzz_registry_init(void);

#endif							/* UK_FUZZ_REGISTRY_H */
