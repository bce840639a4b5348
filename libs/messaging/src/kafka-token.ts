/** Injection token of the process's Kafka client. */
export const KAFKA = Symbol('kafka');
