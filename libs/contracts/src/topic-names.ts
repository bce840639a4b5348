import { kafkaName, type Service } from './contract.js';

/** A header of the records that come from an outbox: a relay may send the same record twice. */
export const OUTBOX_HEADER = 'sluice-outbox';

/** The public topics: stable, for producers and consumers outside. */
export const EVENTS_TOPIC = kafkaName('events');
export const WORKFLOWS_TOPIC = kafkaName('workflows');
export const WORKFLOW_TRIGGERS_TOPIC = kafkaName('workflow-triggers');

/** The topic on which a service receives requests. A header of each record names its command or query. */
export const requestsTopic = (service: Service): string => kafkaName(`${service}.requests`);
export const repliesTopic = (service: Service): string => kafkaName(`${service}.replies`);
export const deadLetterTopic = (service: Service): string => kafkaName(`${service}.dead-letter`);

/** The consumer groups of a service begin with this. */
export const groupPrefix = (service: Service): string => kafkaName(`${service}.`);
