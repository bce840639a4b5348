/** The errors of kafkajs. */
interface KafkaFailure {
  name: string;
  message: string;
  /** The error code of the protocol, such as `TOPIC_AUTHORIZATION_FAILED`. */
  type?: string;
  /** The error code of the connection, such as `ECONNREFUSED`. */
  code?: string | number;
  broker?: string;
  cause?: unknown;
  /** Of a request about several topics, one for each that failed. */
  errors?: unknown[];
}

const CERTIFICATE =
  /self-signed certificate|unable to (get|verify)|certificate has expired|certificate is not yet valid|does not match certificate|Hostname\/IP|wrong version number|alert (unknown ca|certificate required|bad certificate|handshake failure)/i;

/** The issuer of tokens (oauth-tokens.ts) cannot be reached. */
const ISSUER = /^\S+ does not respond: /;

/** kafkajs reports a connection that ends during a login as a refused login: a broker that stopped just then would end each service that logs in. */
const LOST_DURING_LOGIN =
  / failed: (Not connected|Closed connection|Connection (closed|error|timeout)|Failed to connect|Request .* timed out|The broker does not respond)/;

/** Why a topic cannot be created, other than for lack of permission. */
const REFUSED_TOPICS = new Set(['INVALID_PARTITIONS', 'INVALID_CONFIG', 'INVALID_REQUEST', 'POLICY_VIOLATION', 'INVALID_TOPIC_EXCEPTION']);

/** The original failure, without the retries that kafkajs wraps around it. */
function rootOf(error: unknown): KafkaFailure {
  let root = error as KafkaFailure;
  for (;;) {
    const next = root.cause ?? root.errors?.[0];
    if (!(next instanceof Error)) return root;
    root = next;
  }
}

/**
 * One line that names the cause of a failure that a retry does not cure: certificates, credentials, permissions. undefined for any other,
 * such as a broker that is down.
 */
export function explainKafkaError(error: unknown): string | undefined {
  const { name, message, type = '', broker } = rootOf(error);
  const brokerName = broker ? `Kafka (${broker})` : 'Kafka';
  const isLoginRefused = name === 'KafkaJSSASLAuthenticationError' && !LOST_DURING_LOGIN.test(message);
  if (isLoginRefused || type === 'SASL_AUTHENTICATION_FAILED' || type === 'UNSUPPORTED_SASL_MECHANISM')
    return `${brokerName} refuses the login: ${message}. Check KAFKA_SASL_MECHANISM, KAFKA_SASL_USERNAME and KAFKA_SASL_PASSWORD.`;
  if (ISSUER.test(message))
    return CERTIFICATE.test(message)
      ? `No token to log in to Kafka: ${message}. Check KAFKA_SASL_OAUTHBEARER_TOKEN_ENDPOINT_URL, and NODE_EXTRA_CA_CERTS if a private authority has signed its certificate.`
      : undefined;
  if (/issued no token/.test(message)) return `No token to log in to Kafka: ${message}. Check KAFKA_SASL_OAUTHBEARER_….`;
  if (CERTIFICATE.test(message))
    return `The TLS connection to ${brokerName} fails: ${message.replace(/^Connection error: /, '')}. Check KAFKA_SECURITY_PROTOCOL, KAFKA_SSL_CA_LOCATION and the names in the brokers' certificates.`;
  if (/AUTHORIZATION_FAILED$/.test(type) || /not authorized/i.test(message))
    return `Kafka denies access: ${message}. Grant the permissions that \`sluice kafka acls\` prints.`;
  if (type === 'INVALID_REPLICATION_FACTOR')
    return `${brokerName} has too few brokers for the replicas: ${message}. Check SLUICE_REPLICATION_FACTOR.`;
  if (REFUSED_TOPICS.has(type)) return `${brokerName} refuses the topics: ${message}.`;
  return undefined;
}

/** Not among them: INVALID_TIMESTAMP, which passes when the clocks are right. */
const REFUSED_RECORDS = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE', 'INVALID_RECORD']);

/** Whether the broker refuses a record, or a batch with it, on every retry, such as because of its size. */
export const isRefused = (error: unknown): boolean => REFUSED_RECORDS.has(rootOf(error).type ?? '');

/** Whether a group does not know this member, or has assigned its partitions again without it. */
export const isNoMember = (error: unknown): boolean => ['UNKNOWN_MEMBER_ID', 'ILLEGAL_GENERATION'].includes(rootOf(error).type ?? '');

/** Whether the brokers are down or busy, so that a retry helps. */
export function isBrokerFailure(error: unknown): boolean {
  return explainKafkaError(error) === undefined && /^KafkaJS/.test((error as Error | undefined)?.name ?? '');
}

/** Whether a failure comes from Kafka or from the connection to it. kafkajs also wraps the bugs of code that it calls: they do not. */
export const isOfKafka = (error: unknown): boolean => /^KafkaJS/.test(rootOf(error).name);

/** A short reason for a person who waits: the original failure, without the wrappers of kafkajs. */
export const reasonOf = (error: unknown): string => rootOf(error).message;
