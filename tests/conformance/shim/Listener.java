// The listener of the brokers that a test asks for: in plain text, or SASL_PLAINTEXT with the users, the authorizer and the super user
// of Kafka's test kit. With TLS_BROKER, TLS_CLIENT and TLS_CA, which are PEM files, it is SSL or SASL_SSL instead, and clients present a
// certificate. Its principal is ANONYMOUS, which tests of a plain listener expect.
package org.apache.kafka.common.test.junit;

import java.util.HashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.JaasUtils;
import org.opentest4j.TestAbortedException;

final class Listener {
    private static final String LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule";
    private static final boolean HAS_TLS = System.getenv("TLS_BROKER") != null;

    private Listener() {
    }

    /** The protocol of the listener for a test that asks for `wanted`. */
    static SecurityProtocol protocol(SecurityProtocol wanted) {
        if (!HAS_TLS) {
            return wanted;
        }
        return wanted == SecurityProtocol.PLAINTEXT ? SecurityProtocol.SSL : SecurityProtocol.SASL_SSL;
    }

    static void addProperties(SecurityProtocol wanted, Properties properties) {
        String prefix = "listener.name." + protocol(wanted).name().toLowerCase(Locale.ROOT) + ".";
        if (HAS_TLS) {
            properties.put("ssl.keystore.type", "PEM");
            properties.put("ssl.keystore.location", System.getenv("TLS_BROKER"));
            properties.put("ssl.truststore.type", "PEM");
            properties.put("ssl.truststore.location", System.getenv("TLS_CA"));
            properties.put(prefix + "ssl.client.auth", "required");
            properties.put("ssl.principal.mapping.rules", "RULE:.*/ANONYMOUS/");
            properties.put("security.inter.broker.protocol", protocol(wanted).name());
        }
        if (wanted == SecurityProtocol.PLAINTEXT) {
            return;
        }
        if (wanted != SecurityProtocol.SASL_PLAINTEXT) {
            throw new TestAbortedException("needs a listener of " + wanted);
        }
        properties.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        properties.putIfAbsent(
            "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        properties.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
        properties.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        properties.putIfAbsent("security.inter.broker.protocol", protocol(wanted).name());
        properties.put(prefix + "plain.sasl.jaas.config", String.format(
            "%s required username=\"%s\" password=\"%s\" user_%s=\"%s\" user_%s=\"%s\";", LOGIN_MODULE,
            JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
            JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
            JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
    }

    /** Settings of a client of the test, with what the listener needs. */
    static Map<String, Object> withTls(SecurityProtocol wanted, Map<String, Object> client) {
        if (!HAS_TLS) {
            return client;
        }
        Map<String, Object> secured = new HashMap<>(client);
        secured.put("security.protocol", protocol(wanted).name());
        secured.put("ssl.keystore.type", "PEM");
        secured.put("ssl.keystore.location", System.getenv("TLS_CLIENT"));
        secured.put("ssl.truststore.type", "PEM");
        secured.put("ssl.truststore.location", System.getenv("TLS_CA"));
        return secured;
    }
}
