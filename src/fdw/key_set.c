/*
 * key_set.c
 *	  The set behind key_set.h.  A tree, because types need not have a hash function.
 */
#include "postgres.h"

#include "fdw/key_set.h"
#include "lib/rbtree.h"
#include "utils/datum.h"
#include "utils/memutils.h"

/* Values are indexed by the key's column, not by the row's. */
typedef struct KeySetNode
{
	RBTNode		rbt;
	Datum		values[FLEXIBLE_ARRAY_MEMBER];
} KeySetNode;

struct KeySet
{
	MemoryContext cxt;
	const KeyDesc *row;			/* of the rows that keys come from */
	KeyDesc	   *keys;			/* the same of a node's values */
	RBTree	   *tree;
	KeySetNode *probe;			/* values are those of a row */
};

static int
compare_nodes(const RBTNode *a, const RBTNode *b, void *arg)
{
	return key_compare(((KeySet *) arg)->keys, ((const KeySetNode *) a)->values,
					   ((const KeySetNode *) b)->values);
}

static RBTNode *
allocate_node(void *arg)
{
	KeySet	   *set = arg;

	return MemoryContextAlloc(set->cxt, offsetof(KeySetNode, values) + sizeof(Datum) * set->keys->n);
}

/* What is there already stays as it is. */
static void
combine_nodes(RBTNode *existing, const RBTNode *newdata, void *arg)
{
}

KeySet *
key_set_create(const KeyDesc *keys)
{
	MemoryContext cxt = AllocSetContextCreate(CurrentMemoryContext, "key set", ALLOCSET_DEFAULT_SIZES);
	MemoryContext old = MemoryContextSwitchTo(cxt);
	KeySet	   *set = palloc0(sizeof(KeySet));
	Size		node_size = offsetof(KeySetNode, values) + sizeof(Datum) * keys->n;

	set->cxt = cxt;
	set->row = keys;
	set->keys = palloc(sizeof(KeyDesc));
	*set->keys = *keys;
	set->keys->columns = palloc(sizeof(KeyColumn) * Max(keys->n, 1));
	for (int i = 0; i < keys->n; i++)
	{
		set->keys->columns[i] = keys->columns[i];
		set->keys->columns[i].attnum = i + 1;
	}
	set->tree = rbt_create(node_size, compare_nodes, combine_nodes, allocate_node, NULL, set);
	set->probe = palloc0(node_size);
	MemoryContextSwitchTo(old);
	return set;
}

static const RBTNode *
probe(KeySet *set, const Datum *values)
{
	for (int i = 0; i < set->keys->n; i++)
		set->probe->values[i] = values[set->row->columns[i].attnum - 1];
	return &set->probe->rbt;
}

void
key_set_add(KeySet *set, const Datum *values)
{
	bool		is_new;
	KeySetNode *node = (KeySetNode *) rbt_insert(set->tree, probe(set, values), &is_new);
	MemoryContext old;

	if (!is_new)
		return;
	old = MemoryContextSwitchTo(set->cxt);
	for (int i = 0; i < set->keys->n; i++)
		node->values[i] = datumCopy(node->values[i], set->keys->columns[i].typbyval, set->keys->columns[i].typlen);
	MemoryContextSwitchTo(old);
}

bool
key_set_has(KeySet *set, const Datum *values)
{
	return rbt_find(set->tree, probe(set, values)) != NULL;
}
