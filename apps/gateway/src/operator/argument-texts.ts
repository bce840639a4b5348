import { InvalidArgumentError } from 'commander';
import { NAME_LENGTH } from '#contracts';

/** In characters: RFC 5321 limits a path to 256 bytes, with two angle brackets. */
const EMAIL_LENGTH = 254;

/** An argument that is an e-mail address. Throws InvalidArgumentError if it is not one, or too long. */
export function emailAddress(text: string): string {
  if (!/^[^\s@]+@[^\s@]+$/.test(text)) throw new InvalidArgumentError('It is not an email address.');
  return limited(text, EMAIL_LENGTH);
}

/** An argument that is a name, with the limit of the API. Throws InvalidArgumentError if it is empty, or too long, or has control characters. */
export function nameText(text: string): string {
  if (text === '') throw new InvalidArgumentError('It must not be empty.');
  return limited(text, NAME_LENGTH);
}

function limited(text: string, characters: number): string {
  if ([...text].length > characters) throw new InvalidArgumentError(`It must be at most ${characters} characters long.`);
  if (/\p{Cc}/u.test(text)) throw new InvalidArgumentError('It must not contain control characters.');
  return text;
}
