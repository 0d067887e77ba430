/* Connectors: Debezium's connectors in this process, for test/debezium/run; what they emit goes to Kafka as Connect would send it. */
import io.apicurio.registry.utils.converter.AvroConverter;
import io.debezium.embedded.Connect;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.RecordChangeEvent;
import io.debezium.engine.format.ChangeEventFormat;
import java.io.FileReader;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.storage.*;

/*
 * Connectors BROKER CONNECTOR.properties ..     runs until its input ends
 *
 * A connector's property test.topics names what its records are written as, by the topic's prefix: "with_schema=json bare=plain
 * framed=avro". The last needs a registry, -Dregistry=URL, and is as Confluent's converter writes it: 0x00, an id, Avro.
 * Prints "start NAME" when a connector's task runs, "marker NAME N" when a row N of a table "marker" is in Kafka, and "stop NAME WHY".
 */
public class Connectors {
    static final HeaderConverter HEADERS = new SimpleHeaderConverter();     // Connect's default
    static KafkaProducer<byte[], byte[]> producer;
    static final List<DebeziumEngine<?>> engines = new ArrayList<>();

    record Sink(String prefix, Converter key, Converter value) {}

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        p.put("bootstrap.servers", args[0]);
        p.put("linger.ms", "5");
        p.put("max.request.size", "20000000");
        producer = new KafkaProducer<>(p, new ByteArraySerializer(), new ByteArraySerializer());
        ExecutorService threads = Executors.newCachedThreadPool();
        for (int i = 1; i < args.length; i++) {
            Properties connector = new Properties();
            try (FileReader file = new FileReader(args[i])) { connector.load(file); }
            DebeziumEngine<?> engine = create(connector);
            engines.add(engine);
            threads.execute(engine);
        }
        while (System.in.read() >= 0) { }
        for (DebeziumEngine<?> engine : engines) engine.close();
        producer.close();
        System.exit(0);
    }

    static Converter json(boolean schemas, boolean key) {
        JsonConverter converter = new JsonConverter();
        converter.configure(Map.of("schemas.enable", String.valueOf(schemas)), key);
        return converter;
    }

    static Converter avro(boolean key) {
        AvroConverter<?> converter = new AvroConverter<>();
        converter.configure(Map.of("apicurio.registry.url", System.getProperty("registry") + "/apis/registry/v2", "apicurio.registry.auto-register", "true",
            "apicurio.registry.as-confluent", "true", "apicurio.registry.use-id", "contentId", "apicurio.registry.headers.enabled", "false"), key);
        return converter;
    }

    static Sink sink(String text) {
        String[] parts = text.split("=");
        switch (parts[1]) {
            case "json": return new Sink(parts[0], json(true, true), json(true, false));
            case "avro": return new Sink(parts[0], avro(true), avro(false));
            case "plain": return new Sink(parts[0], json(false, true), json(false, false));
            default: throw new IllegalArgumentException(text);
        }
    }

    static DebeziumEngine<?> create(Properties properties) {
        String name = properties.getProperty("name");
        String prefix = properties.getProperty("topic.prefix");
        List<Sink> sinks = Arrays.stream(((String) properties.remove("test.topics")).split(" ")).map(Connectors::sink).toList();
        return DebeziumEngine.create(ChangeEventFormat.of(Connect.class)).using(properties)
            .using(new DebeziumEngine.ConnectorCallback() {
                @Override public void taskStarted() { say("start " + name); }
            })
            .using((success, message, error) -> say("stop " + name + " " + (success ? "as told" : message + " " + error)))
            .notifying((List<RecordChangeEvent<SourceRecord>> events, DebeziumEngine.RecordCommitter<RecordChangeEvent<SourceRecord>> committer) -> {
                List<String> markers = new ArrayList<>();
                List<Future<?>> sent = new ArrayList<>();
                for (RecordChangeEvent<SourceRecord> event : events) {
                    SourceRecord record = event.record();
                    for (Sink sink : sinks) sent.add(send(sink, prefix, record));
                    if (record.topic().endsWith(".marker") && record.value() != null)
                        markers.add("marker " + name + " " + ((Struct) record.key()).get("id"));
                    committer.markProcessed(event);
                }
                producer.flush();
                for (Future<?> one : sent) {
                    try {
                        one.get();
                    } catch (ExecutionException e) {
                        say("stop " + name + " " + e.getCause());
                        throw new IllegalStateException(e);
                    }
                }
                markers.forEach(Connectors::say);
                committer.markBatchFinished();
            }).build();
    }

    static Future<?> send(Sink sink, String prefix, SourceRecord record) {
        String topic = sink.prefix() + record.topic().substring(prefix.length());
        RecordHeaders headers = new RecordHeaders();
        record.headers().forEach(h -> headers.add(h.key(), HEADERS.fromConnectHeader(topic, h.key(), h.schema(), h.value())));
        return producer.send(new ProducerRecord<>(topic, null, sink.key().fromConnectData(topic, record.keySchema(), record.key()),
            sink.value().fromConnectData(topic, record.valueSchema(), record.value()), headers));
    }

    static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
