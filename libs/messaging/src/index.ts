export { errorFromWire, errorToWire } from './wire.js';
export type { MissedRecords } from './log-continuity.js';
export { clientIdOf } from './dead-members.js';
export { consumerStates } from './consumer-life.js';
export { Consumers } from './consumers.js';
export { deadLetterRecord, refusedOf, type Sender, sendOrSetAside } from './dead-letters.js';
export { eachSecond } from './each-second.js';
export { Batch, Consumes, ConsumesBatch, Follows, Handles, ignored, type Outcome, PositionsOf, rejected } from './handlers.js';
export { inHalves } from './in-halves.js';
export { explainKafkaError, isOfKafka, reasonOf } from './kafka-errors.js';
export { KafkaClient, METADATA_MAX_AGE_MS, partitionOf } from './kafka.js';
export { KafkaConfig } from './kafka.config.js';
export { KeptAdmin } from './kept-admin.js';
export { LaneIntake, type PartitionProgress } from './lane-intake.js';
export { Lanes, type LanesOptions, type Task } from './lanes.js';
export { Fenced, LogIntake } from './log-intake.js';
export { LogReader, type LogRanges } from './log-reader.js';
export { LogRecord } from './log-record.js';
export {
  currentLateHandler,
  keyOf,
  LATE_MS,
  Messages,
  recordOf,
  type ReplyListener,
  type RequestOptions,
  withLateReplies,
} from './messages.js';
export { fieldsOf, payloadOf, PayloadPipe } from './payload.js';
export { isOutage, laneFailures } from './outcomes.js';
export { inParts, type OutgoingRecord, Publisher, SEND_WITHIN_MS, shares, sizeOf } from './publisher.js';
export { deadlineOf } from './requests.js';
export type { GroupPosition, Restores } from './restores.js';
export { checkTopics, createTopics, limitTopics, type TopicSettings, wrongTopics } from './topics.js';
export { TopicsConfig } from './topics.config.js';
export { KafkaTransport } from './transport.js';
export { AHEAD_MS, type Position, type Progress } from './watermark.js';
