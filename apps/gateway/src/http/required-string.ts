import { IsString } from 'class-validator';

/** A parameter that must be given, and must be a string. @param format of the string, for the message of a missing one */
export const RequiredString = (format?: string): PropertyDecorator =>
  IsString({
    message: ({ property, value }) => {
      if (value !== undefined && value !== null) return `${property} must be a string`;
      return `${property} is required${format === undefined ? '' : `: ${format}`}`;
    },
  });
