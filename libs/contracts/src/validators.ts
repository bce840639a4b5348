import { ValidateBy } from 'class-validator';

/** Text that can be stored: PostgreSQL does not accept a NUL character. */
export const IsText = (): PropertyDecorator =>
  ValidateBy({
    name: 'isText',
    validator: {
      validate: (value: unknown) => typeof value === 'string' && !value.includes('\0'),
      defaultMessage: (args) =>
        typeof args?.value === 'string' ? `${args.property} must not contain a NUL character` : `${args?.property} must be a string`,
    },
  });
