/* KafkaClient: Kafka's own Java client for test/interop/run, which other Java programs are made of. Knows nothing of upsert_kafka. */
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.*;

/*
 * KafkaClient BROKER read TOPIC        prints what read_committed shows: partition, offset, timestamp, key, value, headers; bytes as hex
 * KafkaClient BROKER copy TOPIC TO     sends the same messages, leaving the partition to the producer
 * KafkaClient BROKER transactions TOPIC    transactions, of which every second is aborted
 */
public class KafkaClient {
    static String broker;

    public static void main(String[] args) throws Exception {
        broker = args[0];
        switch (args[1]) {
            case "read" -> read(args[2]).forEach(KafkaClient::print);
            case "copy" -> copy(args[2], args[3]);
            case "transactions" -> transactions(args[2]);
            default -> throw new IllegalArgumentException(args[1]);
        }
    }

    static Properties properties(String... more) {
        Properties p = new Properties();
        p.put("bootstrap.servers", broker);
        for (int i = 0; i < more.length; i += 2) p.put(more[i], more[i + 1]);
        return p;
    }

    static KafkaProducer<byte[], byte[]> producer(String... more) {
        return new KafkaProducer<>(properties(more), new ByteArraySerializer(), new ByteArraySerializer());
    }

    /* Everything up to the ends of now, by partition and offset. */
    static List<ConsumerRecord<byte[], byte[]>> read(String topic) {
        List<ConsumerRecord<byte[], byte[]>> all = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(properties("isolation.level", "read_committed", "enable.auto.commit", "false"),
                new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            var partitions = consumer.partitionsFor(topic).stream().map(p -> new TopicPartition(topic, p.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            var ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(p -> consumer.position(p) < ends.get(p)))
                consumer.poll(Duration.ofMillis(200)).forEach(all::add);
        }
        all.sort(Comparator.comparingInt((ConsumerRecord<byte[], byte[]> r) -> r.partition()).thenComparingLong(r -> r.offset()));
        return all;
    }

    static String hex(byte[] bytes) { return bytes == null ? "null" : HexFormat.of().formatHex(bytes); }

    static void print(ConsumerRecord<byte[], byte[]> r) {
        StringJoiner headers = new StringJoiner(",");
        for (Header h : r.headers()) headers.add(h.key() + "=" + hex(h.value()));
        System.out.println(String.join("\t", "" + r.partition(), "" + r.offset(), "" + r.timestamp(), hex(r.key()), hex(r.value()), headers.toString()));
    }

    static void copy(String topic, String to) throws Exception {
        try (var producer = producer("linger.ms", "0")) {
            for (var r : read(topic)) producer.send(new ProducerRecord<>(to, null, r.timestamp(), r.key(), r.value(), r.headers())).get();
        }
    }

    /* Round 1, 3 and 5 are committed: the last one is the state, except for ids that a round deletes (id mod 7 = round). */
    static void transactions(String topic) {
        try (var producer = producer("transactional.id", topic)) {
            producer.initTransactions();
            for (int round = 1; round <= 6; round++) {
                producer.beginTransaction();
                for (int id = 1; id <= 20; id++) {
                    String key = "{\"id\":" + id + "}";
                    String value = id % 7 == round ? null : "{\"id\":" + id + ",\"round\":" + round + "}";
                    producer.send(new ProducerRecord<>(topic, key.getBytes(StandardCharsets.UTF_8), value == null ? null : value.getBytes(StandardCharsets.UTF_8)));
                }
                producer.flush();               // so that what is aborted is in the log
                if (round % 2 == 1) producer.commitTransaction(); else producer.abortTransaction();
            }
        }
    }
}
