import { type Service, topicSpecs, topicSpecsOf } from '#contracts';
import { createTopics, explainKafkaError, type KafkaClient, KeptAdmin, type TopicSettings } from '#messaging';
import { counter, type Log } from '#observability';

const EVERY_MS = 5000;

const recreated = counter('topics_recreated_total', 'Topics that a running service missed and created again.');

/**
 * Creates the topics of a running service again if they are deleted or the brokers lose their disks. Without them, no service could send
 * and no consumer could run.
 * @returns a function that stops it
 */
export function recreateDeletedTopics(service: Service, kafka: KafkaClient, settings: TopicSettings, log: Log): () => void {
  const specs = topicSpecsOf(service);
  const admin = new KeptAdmin(kafka);
  let checking = false;
  const check = async (): Promise<void> => {
    if (checking) return;
    checking = true;
    try {
      const topics = await createTopics(admin, specs, settings);
      if (topics.length === 0) return;
      // those of services that are down, which wait for them before they start; only the brokers know whether this one may create them
      topics.push(...(await createTopics(admin, topicSpecs(), settings).catch(() => [])));
      recreated.inc(topics.length);
      log.error({ topics }, 'topics.recreated');
    } catch (error) {
      const reason = explainKafkaError(error);
      // brokers that are down are reported by the consumers
      if (reason !== undefined) log.error({ reason }, 'topics.missing');
    } finally {
      checking = false;
    }
  };
  const timer = setInterval(() => void check(), EVERY_MS).unref();
  return () => {
    clearInterval(timer);
    void admin.close();
  };
}
