import { ACTS_ON, type EmitterChangeKind, emitterChanged, type EmitterState } from '#contracts';
import type { Messages } from '#messaging';

/** Announces changes of one kind, each to the services that act on it before the request that made it returns. Returns false if one of them is late. */
export async function announceChanges(
  messages: Pick<Messages, 'announce'>,
  states: EmitterState[],
  kind: EmitterChangeKind,
): Promise<boolean> {
  const applied = await Promise.all(states.map((state) => messages.announce(emitterChanged, state, state.emitter_id, ACTS_ON[kind])));
  return !applied.includes(false);
}
