/* FlinkSql: a real Flink in this process, driven by test/interop/run through its input and output. Knows nothing of upsert_kafka. */
import java.io.*;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.time.*;
import java.time.format.DateTimeFormatter;
import java.util.*;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.table.api.*;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/*
 * One SQL statement per line. The answer is one line per row of the result (changes are applied, so a SELECT gives its
 * state at the end), "row" and its columns in the form of COPY's text, then "ok" and the number of changes, or "error" and why.
 */
public class FlinkSql {
    static final DateTimeFormatter MICROS = DateTimeFormatter.ofPattern("yyyy-MM-dd HH:mm:ss.SSSSSS");

    public static void main(String[] args) throws Exception {
        Configuration c = new Configuration();
        c.setString("restart-strategy.type", "none");
        c.setString("parallelism.default", "1");
        c.setString("taskmanager.memory.network.min", "16m");
        c.setString("taskmanager.memory.network.max", "16m");
        c.setString("taskmanager.memory.managed.size", "32m");
        c.setString("execution.checkpointing.interval", "1s");     // exactly-once sinks commit with checkpoints
        c.setString("table.local-time-zone", "UTC");
        TableEnvironment flink = TableEnvironment.create(EnvironmentSettings.newInstance().inStreamingMode().withConfiguration(c).build());
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String sql; (sql = in.readLine()) != null;) {
            try {
                out.println("ok\t" + run(flink, sql, out));
            } catch (Throwable e) {
                StringBuilder why = new StringBuilder();
                for (Throwable t = e; t != null; t = t.getCause()) why.append(t).append("; ");
                out.println("error\t" + why.toString().replace('\n', ' '));
            }
        }
        System.exit(0);
    }

    static long run(TableEnvironment flink, String sql, PrintStream out) throws Exception {
        TableResult result = flink.executeSql(sql);
        if (!sql.startsWith("SELECT")) {
            result.await();
            return 0;
        }
        List<String> rows = new ArrayList<>();
        long changes = 0;
        try (var it = result.collect()) {
            for (; it.hasNext(); changes++) {
                Row row = it.next();
                String text = text(row);
                if (row.getKind() == RowKind.INSERT || row.getKind() == RowKind.UPDATE_AFTER) rows.add(text);
                else if (!rows.remove(text)) throw new IllegalStateException(row.getKind() + " of a row that is not there: " + text);
            }
        }
        rows.forEach(out::println);
        return changes;
    }

    static String text(Row row) {
        StringBuilder b = new StringBuilder("row");
        for (int i = 0; i < row.getArity(); i++) b.append('\t').append(text(row.getField(i)));
        return b.toString();
    }

    /* A double as its bits and bytes as hex: no rounding, no choice of spelling. */
    static String text(Object o) {
        if (o == null) return "\\N";
        if (o instanceof byte[] bytes) return HexFormat.of().formatHex(bytes);
        if (o instanceof Double d) return String.format("%016x", Double.doubleToLongBits(d));
        if (o instanceof BigDecimal d) return d.toPlainString();
        if (o instanceof LocalDateTime t) return t.format(MICROS);
        if (o instanceof Instant t) return LocalDateTime.ofInstant(t, ZoneOffset.UTC).format(MICROS) + "Z";
        return o.toString().replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n").replace("\r", "\\r");
    }
}
