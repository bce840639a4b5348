import { IsString } from 'class-validator';

/** A parameter that must be given, and must be a string. */
export const RequiredString = (): PropertyDecorator =>
  IsString({
    message: ({ property, value }) => `${property} ${value === undefined || value === null ? 'is required' : 'must be a string'}`,
  });
