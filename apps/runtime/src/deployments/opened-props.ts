import {
  AUTH,
  CONNECTION_ID,
  connectionContext,
  type Deployment,
  isObject,
  mapValues,
  propsContext,
  type SourceId,
  unmasked,
} from '#contracts';
import type { SecretBox } from '#secrets';

type Values = Record<string, unknown>;

type Stored = Pick<Deployment, 'configured_props' | 'credentials'>;

/** The configured values of a source, decrypted, with the credentials of its connections as `$auth`. */
export const openedProps = (box: SecretBox, sourceId: SourceId, stored: Stored): Values =>
  connectedProps(box, sourceId, stored, () => true);

/** The values that determine hooks: with the credentials that were given inline, but without those of other connections. */
export const comparedProps = (box: SecretBox, sourceId: SourceId, stored: Stored): Values =>
  connectedProps(box, sourceId, stored, (value) => Object.hasOwn(value, AUTH));

function connectedProps(
  box: SecretBox,
  sourceId: SourceId,
  { configured_props, credentials }: Stored,
  isWanted: (value: Values) => boolean,
): Values {
  const values =
    typeof configured_props === 'string' ? (JSON.parse(box.open(configured_props, propsContext(sourceId))) as Values) : configured_props;
  if (!credentials) return values;
  return mapValues(values, (value) => {
    if (!isObject(value) || !isWanted(value)) return value;
    const id = String(value[CONNECTION_ID]);
    const sealed = Object.hasOwn(credentials, id) ? credentials[id] : undefined;
    return sealed === undefined ? value : { ...value, [AUTH]: JSON.parse(box.open(sealed, connectionContext(id))) as unknown };
  });
}

/** The sent values, with the source's own values in place of masks. */
export const withoutMasks = (sent: Values, own: Values): Values =>
  mapValues(unmasked(sent, own).values, (value, name) => {
    if (!isObject(value) || !isObject(value[AUTH])) return value;
    const before = own[name];
    return { ...value, [AUTH]: unmasked(value[AUTH], isObject(before) ? before[AUTH] : undefined).values };
  });
