import { ownHosts } from '#egress';
import type { KafkaClient } from '#messaging';
import type { Log } from '#observability';

const EVERY_MS = 5 * 60_000;

/**
 * Protects every broker of the cluster from users' connections, not only the bootstrap servers: reads the cluster's metadata now, and again
 * every five minutes.
 * @returns a function that stops it
 */
export async function protectBrokers(kafka: KafkaClient, log: Log): Promise<() => void> {
  const learn = async (): Promise<void> => {
    const admin = kafka.admin();
    try {
      await admin.connect();
      ownHosts().learnBrokers((await admin.describeCluster()).brokers);
    } catch (error) {
      // the brokers of the last response stay protected
      log.warn({ reason: (error as Error).message }, 'brokers.not-listed');
    } finally {
      await admin.disconnect().catch(() => {});
    }
  };
  await learn();
  const timer = setInterval(() => void learn(), EVERY_MS).unref();
  return () => clearInterval(timer);
}
