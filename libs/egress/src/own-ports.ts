/** Ports of the broker and the database that we use ourselves: whoever may call private hosts must not reach these. */
export function ownPorts(env: Record<string, string | undefined> = process.env): number[] {
  const brokers = (env.KAFKA_BROKERS ?? '').split(',').map((broker) => Number(broker.slice(broker.lastIndexOf(':') + 1)));
  const database = env.DATABASE_URL && URL.canParse(env.DATABASE_URL) ? Number(new URL(env.DATABASE_URL).port || 5432) : NaN;
  return [...brokers, database].filter((port) => Number.isInteger(port) && port > 0);
}
