/*
 * key_set.h
 *	  A set of typed keys in memory: equal is what the key columns' own operators call
 *	  equal (changelog/keys.h).
 */
#ifndef UK_KEY_SET_H
#define UK_KEY_SET_H

#include "changelog/keys.h"

typedef struct KeySet KeySet;

/* Lives in a child of CurrentMemoryContext; 'keys' is kept by reference. */
extern KeySet *key_set_create(const KeyDesc *keys);

/* values[] as in keys.h; they are copied. */
extern void key_set_add(KeySet *set, const Datum *values);
extern bool key_set_has(KeySet *set, const Datum *values);

#endif							/* UK_KEY_SET_H */
