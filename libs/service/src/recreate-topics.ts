import { type Service, topicSpecs, topicSpecsOf } from '#contracts';
import { createTopics, explainKafkaError, type KafkaClient, KeptAdmin, type TopicSettings } from '#messaging';
import { counter, type Log } from '#observability';

const EVERY_MS = 5000;
/** A problem that stays is logged again after this time, then after twice this time, and so on. */
const LOGGED_AGAIN_MS = 60_000;
const LOGGED_AT_LEAST_EVERY_MS = 3_600_000;

const recreated = counter('topics_recreated_total', 'Topics that a running service missed and created again.');

/**
 * Creates the topics of a running service again if they are deleted or the brokers lose their disks. Without them, no service could send
 * and no consumer could run.
 * @returns a function that stops it
 */
export function recreateDeletedTopics(service: Service, kafka: KafkaClient, settings: TopicSettings, log: Log): () => void {
  const specs = topicSpecsOf(service);
  const admin = new KeptAdmin(kafka);
  const problems = new Problems(log);
  let checking = false;
  const check = async (): Promise<void> => {
    if (checking) return;
    checking = true;
    try {
      const topics = await createTopics(admin, specs, settings);
      problems.solved();
      if (topics.length === 0) return;
      // those of services that are down, which wait for them before they start; only the brokers know whether this one may create them
      topics.push(...(await createTopics(admin, topicSpecs(), settings).catch(() => [])));
      recreated.inc(topics.length);
      log.error({ topics }, 'topics.recreated');
    } catch (error) {
      problems.report(error);
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

/** Logs a problem when it begins or changes, and as long as it stays, more and more rarely. */
class Problems {
  private last = '';
  private pauseMs = LOGGED_AGAIN_MS;
  private dueAt = 0;

  constructor(private readonly log: Log) {}

  report(error: unknown): void {
    const reason = explainKafkaError(error);
    // brokers that are down are reported by the consumers
    if (reason === undefined) return;
    const problem = { reason, topics: topicsOf(error) };
    const isNew = JSON.stringify(problem) !== this.last;
    if (!isNew && performance.now() < this.dueAt) return;
    this.last = JSON.stringify(problem);
    this.pauseMs = isNew ? LOGGED_AGAIN_MS : Math.min(2 * this.pauseMs, LOGGED_AT_LEAST_EVERY_MS);
    this.dueAt = performance.now() + this.pauseMs;
    this.log.error(problem, 'topics.missing');
  }

  solved(): void {
    this.last = '';
  }
}

/** The topics that Kafka refuses to create. */
const topicsOf = (error: unknown): string[] =>
  (error as { errors?: { topic?: string }[] }).errors?.flatMap(({ topic }) => topic ?? []) ?? [];
