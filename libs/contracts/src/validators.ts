import { ValidateBy } from 'class-validator';

/** Text that can be kept: PostgreSQL has none with a NUL character. */
export const IsText = (): PropertyDecorator =>
  ValidateBy({
    name: 'isText',
    validator: {
      validate: (value: unknown) => typeof value === 'string' && !value.includes('\0'),
      defaultMessage: (args) =>
        typeof args?.value === 'string' ? `${args.property} must not contain a NUL character` : `${args?.property} must be a string`,
    },
  });

const verbatim = new WeakMap<object, Set<string>>();

/** Users' data, which stays as it came: class-transformer would copy it, and stumble over keys such as `constructor`. */
export const Verbatim = (): PropertyDecorator => (prototype, key) => {
  const keys = verbatim.get(prototype) ?? new Set();
  verbatim.set(prototype, keys.add(String(key)));
};

/** The fields of a contract that are `Verbatim`, its parents' too. */
export function verbatimFields(contract: abstract new (...args: never[]) => unknown): string[] {
  const fields: string[] = [];
  for (let prototype = contract.prototype as object | null; prototype; prototype = Object.getPrototypeOf(prototype) as object | null)
    fields.push(...(verbatim.get(prototype) ?? []));
  return fields;
}
