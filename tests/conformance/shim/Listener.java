// The listener of the brokers that a test asks for: in plain text, or SASL_PLAINTEXT with the users, the authorizer and the super user
// of Kafka's test kit.
package org.apache.kafka.common.test.junit;

import java.util.Properties;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.test.JaasUtils;
import org.opentest4j.TestAbortedException;

final class Listener {
    private static final String LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule";

    private Listener() {
    }

    static void addProperties(SecurityProtocol protocol, Properties properties) {
        if (protocol == SecurityProtocol.PLAINTEXT) {
            return;
        }
        if (protocol != SecurityProtocol.SASL_PLAINTEXT) {
            throw new TestAbortedException("needs a listener of " + protocol);
        }
        properties.putIfAbsent("sasl.enabled.mechanisms", "PLAIN");
        properties.putIfAbsent(
            "authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        properties.putIfAbsent("super.users", "User:" + JaasUtils.KAFKA_PLAIN_ADMIN);
        properties.putIfAbsent("sasl.mechanism.inter.broker.protocol", "PLAIN");
        properties.putIfAbsent("security.inter.broker.protocol", protocol.name());
        properties.put("listener.name.sasl_plaintext.plain.sasl.jaas.config", String.format(
            "%s required username=\"%s\" password=\"%s\" user_%s=\"%s\" user_%s=\"%s\";", LOGIN_MODULE,
            JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
            JaasUtils.KAFKA_PLAIN_ADMIN, JaasUtils.KAFKA_PLAIN_ADMIN_PASSWORD,
            JaasUtils.KAFKA_PLAIN_USER1, JaasUtils.KAFKA_PLAIN_USER1_PASSWORD));
    }
}
