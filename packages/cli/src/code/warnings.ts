import type { Session } from '../session/session.js';
import type { Place } from './component-file.js';

/** Shows the likely mistakes that Sluice has found in a component: one line each, in the form that editors recognise. */
export async function showWarnings(session: Session, componentId: string, placeOf: Place): Promise<void> {
  const { data } = await session.sluice.getComponent({ path: { keyOrId: componentId }, query: { include: 'warnings' } });
  for (const { message, line, column } of data.warnings ?? []) session.warn(`${placeOf(line, column)}: warning: ${message}`);
}
