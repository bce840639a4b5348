import { type Deployment, propsPlace, type SourceId } from '#contracts';
import type { SecretBox } from '#secrets';

/** The configured values of a source, decrypted. */
export const openedProps = (box: SecretBox, sourceId: SourceId, { configured_props }: Deployment): Record<string, unknown> =>
  typeof configured_props === 'string'
    ? (JSON.parse(box.open(configured_props, propsPlace(sourceId))) as Record<string, unknown>)
    : configured_props;
