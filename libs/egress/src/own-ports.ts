import { Config, storeVariables } from '#config';

class Stores extends Config({
  brokers: storeVariables.kafkaBrokers,
  databaseUrl: { ...storeVariables.databaseUrl, fallback: 'postgres:' },
}) {}

/** The ports of our broker and database: they are refused even on private hosts that are allowed. */
export function ownPorts(env: Record<string, string | undefined> = process.env): number[] {
  const { brokers, databaseUrl } = Stores.read(env);
  const ports = brokers.map((broker) => Number(broker.slice(broker.lastIndexOf(':') + 1)));
  return databaseUrl === 'postgres:' ? ports : [...ports, Number(new URL(databaseUrl).port || 5432)];
}
