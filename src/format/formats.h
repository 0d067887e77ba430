/*
 * formats.h
 *	  The formats of this build, for format.c: one line per format.
 */
#ifndef UK_FORMATS_H
#define UK_FORMATS_H

#include "format/format.h"

extern const FormatRoutine json_format;
extern const FormatRoutine debezium_json_format;
extern const FormatRoutine canal_json_format;
extern const FormatRoutine maxwell_json_format;
extern const FormatRoutine ogg_json_format;
extern const FormatRoutine raw_format;
extern const FormatRoutine csv_format;
extern const FormatRoutine avro_format;
extern const FormatRoutine avro_confluent_format;
extern const FormatRoutine debezium_avro_confluent_format;
extern const FormatRoutine protobuf_format;
extern const FormatRoutine protobuf_confluent_format;

#endif							/* UK_FORMATS_H */
