import { dataOption } from '../session/option-values.js';
import { findEmitter } from '../resources/find.js';
import { usageError } from '../session/errors.js';
import { itemText } from '../session/output.js';
import type { Session } from '../session/session.js';

export interface PublishOptions {
  data?: string;
  stream?: string;
  id?: string;
}

/** `sluice publish EMITTER --data JSON` */
export async function publish(session: Session, text: string, { data, stream, id }: PublishOptions): Promise<void> {
  if (data === undefined) throw usageError('--data is required: JSON, @file, or - for standard input');
  const event = await dataOption(data, () => session.stdin());
  const emitter = await findEmitter(session.sluice, text, { exactly: !session.isInteractive });
  const emit_id = await session.sluice.publish(emitter, event, { eventName: stream, id });
  session.print(session.format === 'table' ? `${emit_id}\n` : itemText({ emit_id }, session.format));
}
