/** The text by which responses of the REST API replace secrets, too. */
const MASK = '••••••••';

/** Members of a request or response that hold credentials. `auth` is the login that axios sends. */
const CREDENTIALS = /^(?:(?:proxy-)?authorization|(?:set-)?cookie|auth|x-api-key|(?:x-auth|private)-token)$/i;

/** `axios` of @pipedream/platform prints its requests so: each with `debug`, otherwise those that fail. */
const PRINTED = /^export: \w+ - (?=\{)/;

/** A text that a component prints, without the credentials of a request in it. */
export function withoutCredentials(text: string): string {
  const start = PRINTED.exec(text)?.[0];
  if (start === undefined) return text;
  try {
    const request: unknown = JSON.parse(text.slice(start.length), (name, value: unknown) => (CREDENTIALS.test(name) ? MASK : value));
    return start + JSON.stringify(request, null, 2);
  } catch {
    return text;
  }
}
