import { Config, integer } from '#config';
import { topicPrefix } from '#contracts';

/** The settings with which topics are created, and with which existing ones are compared. */
export class TopicsConfig extends Config({
  topicPrefix,
  partitions: integer('SLUICE_PARTITIONS', {
    fallback: 4,
    min: 1,
    max: 1000,
    description: 'Partitions of a topic when it is created: the upper limit for replicas of a service that work at a time.',
  }),
  replicas: integer('SLUICE_REPLICATION_FACTOR', {
    fallback: 1,
    min: 1,
    max: 10,
    description: 'Replicas of each partition when a topic is created; 3 in production.',
  }),
  minInSyncReplicas: integer('SLUICE_MIN_INSYNC_REPLICAS', {
    fallback: 1,
    min: 1,
    max: 10,
    description: 'Replicas that must have a record before it counts as written (`min.insync.replicas` of new topics); 2 in production.',
  }),
}) {
  problems(): string[] {
    return this.minInSyncReplicas > this.replicas
      ? [`SLUICE_MIN_INSYNC_REPLICAS is ${this.minInSyncReplicas}, more than SLUICE_REPLICATION_FACTOR, which is ${this.replicas}`]
      : [];
  }
}
