import { type Deployment, MASK, propsPlace, type SourceId } from '#contracts';
import type { SecretBox } from '#secrets';

type Values = Record<string, unknown>;
const AUTH = '$auth';

/** The configured values of a source, decrypted. */
export const openedProps = (box: SecretBox, sourceId: SourceId, { configured_props }: Pick<Deployment, 'configured_props'>): Values =>
  typeof configured_props === 'string' ? (JSON.parse(box.open(configured_props, propsPlace(sourceId))) as Values) : configured_props;

/** Values that were sent, with the source's own in place of masks. */
export const withoutMasks = (sent: Values, own: Values): Values =>
  mapValues(sent, (value, name) => {
    const before = Object.hasOwn(own, name) ? own[name] : undefined;
    if (value === MASK) return before;
    if (!isObject(value) || !isObject(value[AUTH])) return value;
    const credentials = isObject(before) && isObject(before[AUTH]) ? before[AUTH] : {};
    return { ...value, [AUTH]: mapValues(value[AUTH], (each, key) => (each === MASK ? credentials[key] : each)) };
  });

const isObject = (value: unknown): value is Values => typeof value === 'object' && value !== null && !Array.isArray(value);

const mapValues = (object: Values, change: (value: unknown, key: string) => unknown): Values =>
  Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
