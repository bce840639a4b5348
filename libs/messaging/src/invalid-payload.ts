import type { ValidationError } from 'class-validator';
import { type FieldProblem, Invalid } from '#contracts';

/** One problem per invalid field: the first. */
export const invalidPayload = (errors: ValidationError[]): Invalid => new Invalid(errors.flatMap((error) => problems(error, '')));

function problems(error: ValidationError, path: string): FieldProblem[] {
  const field = path + error.property;
  const first = Object.values(error.constraints ?? {})[0];
  return [
    ...(first === undefined ? [] : [{ field, message: first }]),
    ...(error.children ?? []).flatMap((child) => problems(child, `${field}.`)),
  ];
}
