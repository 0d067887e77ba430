/*
 * avro_program.c
 *	  A writer's schema resolved against columns: which field goes to which column, and
 *	  what becomes of the others.
 *
 * What a field's value becomes is avro_read.c's.
 */
#include "postgres.h"

#include "format/avro_program.h"
#include "format/avro_read.h"
#include "format/avro_text.h"

typedef struct ProgramColumn
{
	AvroReader *reader;
	int			index;
	const char *name;
} ProgramColumn;

typedef struct ProgramStep
{
	const AvroNode *node;
	int			ncolumns;		/* 0: passed over */
	ProgramColumn *columns;
} ProgramStep;

/* A column without a field */
typedef struct MissingColumn
{
	AvroReader *reader;			/* of null, or of the default */
	int			index;
	const char *name;
	bool		has_default;
	StringInfoData value;		/* the default's bytes, else none */
} MissingColumn;

struct AvroProgram
{
	const AvroNode *root;
	bool		strip_nul;
	int			null_branch;	/* of a root that is a union with null, else
								 * -1 */
	int			nsteps;
	ProgramStep *steps;
	int			nmissing;
	MissingColumn *missing;
};

/* The record that the schema is, alone or beside null (*null_branch, else -1); NULL if it is none */
static const AvroNode *
record_of(const AvroNode *schema, int *null_branch)
{
	int			branch;

	*null_branch = -1;
	if (avro_is_nullable(schema, &branch))
	{
		*null_branch = 1 - branch;
		schema = schema->children[branch];
	}
	return schema->type == AVRO_RECORD ? schema : NULL;
}

static int
find_field(const AvroNode *record, const char *name)
{
	for (int i = 0; record && i < record->n; i++)
	{
		if (strcmp(record->names[i], name) == 0)
			return i;
	}
	return -1;
}

/* The writer's field for a column: that of its name, or of one that 'own' has for it as an alias */
static int
writer_field(const AvroNode *record, const AvroNode *own, const char *name)
{
	int			i = find_field(record, name);
	int			mine = i < 0 ? find_field(own, name) : -1;
	ListCell   *lc;

	if (mine < 0)
		return i;
	foreach(lc, own->aliases[mine])
	{
		i = find_field(record, lfirst(lc));
		if (i >= 0)
			break;
	}
	return i;
}

static void
missing_column(MissingColumn *missing, const AvroNode *own, const FormatColumn *column, const char *time_zone)
{
	static const AvroNode null = {.type = AVRO_NULL};
	int			mine = find_field(own, column->field);
	const AvroNode *node = &null;

	missing->index = column->index;
	missing->name = column->column;
	missing->has_default = mine >= 0 && own->defaults[mine] != NULL;
	initStringInfo(&missing->value);
	if (missing->has_default)
	{
		node = own->children[mine];
		avro_default_to_binary(node, own->defaults[mine], &missing->value);
	}
	missing->reader = avro_reader_create(node, column->type, column->typmod, column, time_zone);
}

AvroProgram *
avro_program_create(const AvroNode *schema, const AvroNode *own, int ncolumns, const FormatColumn *columns,
					const char *time_zone)
{
	AvroProgram *program = palloc0(sizeof(AvroProgram));
	const AvroNode *record = record_of(schema, &program->null_branch);
	int		   *field_of = palloc(sizeof(int) * Max(ncolumns, 1));
	int			own_null;

	own = own ? record_of(own, &own_null) : NULL;
	program->root = record ? record : schema;
	program->strip_nul = ncolumns > 0 && columns[0].style.strip_nul;
	if (record == NULL)
	{
		/* the schema "string" of a key: one value, without a name */
		if (ncolumns > 1)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 errmsg("the message's Avro schema is of type \"%s\", not a record with fields for %d columns",
							avro_type_name(schema), ncolumns)));
		program->null_branch = -1;
	}
	program->missing = palloc0(sizeof(MissingColumn) * Max(ncolumns, 1));
	for (int j = 0; j < ncolumns; j++)
	{
		field_of[j] = record ? writer_field(record, own, columns[j].field) : 0;
		if (field_of[j] < 0)
			missing_column(&program->missing[program->nmissing++], own, &columns[j], time_zone);
	}

	program->nsteps = record ? record->n : 1;
	program->steps = palloc0(sizeof(ProgramStep) * Max(program->nsteps, 1));
	for (int i = 0; i < program->nsteps; i++)
	{
		ProgramStep *step = &program->steps[i];

		step->node = record ? record->children[i] : schema;
		for (int j = 0; j < ncolumns; j++)
		{
			ProgramColumn *column;

			if (field_of[j] != i)
				continue;
			if (step->columns == NULL)
				step->columns = palloc(sizeof(ProgramColumn) * ncolumns);
			column = &step->columns[step->ncolumns++];
			column->reader = avro_reader_create(step->node, columns[j].type, columns[j].typmod, &columns[j], time_zone);
			column->index = columns[j].index;
			column->name = columns[j].column;
		}
	}
	return program;
}

/* === Running ================================================================ */

void
avro_program_run(AvroProgram *program, const char *bytes, Size len, RowSink *sink)
{
	AvroInput	in = {bytes, bytes + len, 0, program->strip_nul};

	if (program->null_branch >= 0)
	{
		/* the two branches are null and the record */
		int64		branch = avro_read_long(&in);

		if (branch != 1 - program->null_branch)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_BINARY_REPRESENTATION),
					 branch == program->null_branch ? errmsg("an Avro record is expected, found null")
					 : errmsg("invalid Avro data: a union of 2 has no number %lld", (long long) branch)));
	}
	for (int i = 0; i < program->nsteps; i++)
	{
		ProgramStep *step = &program->steps[i];
		const char *begin = in.p;

		if (step->ncolumns == 0)
		{
			avro_skip(&in, step->node);
			continue;
		}
		for (int j = 0; j < step->ncolumns; j++)
		{
			ProgramColumn *column = &step->columns[j];

			in.p = begin;
			sink->column = column->name;
			sink->values[column->index] = avro_reader_read(column->reader, &in, &sink->isnull[column->index]);
		}
		sink->column = NULL;
	}
	avro_check_end(&in);
	for (int i = 0; i < program->nmissing; i++)
	{
		MissingColumn *missing = &program->missing[i];
		AvroInput	given = {missing->value.data, missing->value.data + missing->value.len, 0, program->strip_nul};

		sink->column = missing->name;
		sink->values[missing->index] = avro_reader_read(missing->reader, &given, &sink->isnull[missing->index]);
		if (sink->missing && !missing->has_default)
			sink->missing[missing->index] = true;
	}
	sink->column = NULL;
}
