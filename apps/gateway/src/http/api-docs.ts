import { applyDecorators, type Type } from '@nestjs/common';
import { ApiBearerAuth, ApiBody, ApiExtraModels, ApiQuery, ApiResponse, ApiTags, getSchemaPath } from '@nestjs/swagger';
import { Problem } from './problem.js';
import { PageInfo } from './page.dto.js';

type Schema = Record<string, unknown>;

/** The header of every response. */
export const REQUEST_ID = {
  'X-Request-Id': { description: 'The id of the request: the one that was sent, or a new one.', schema: { type: 'string' } },
};

const json = (description: string, schema: Schema) => ({ description, headers: REQUEST_ID, content: { 'application/json': { schema } } });

const reference = (model: Type): Schema => ({ $ref: getSchemaPath(model) });

/** The schema of a value of any type. Nest would make `{}` a `type: object`; openapi-document.ts makes this one `{}`, which generators know. */
export const ANY_JSON = { anyOf: [{}] };

const MAX_EVENT_NAME = 128;

/** The name of a stream that can be subscribed to. */
export const EVENT_NAME = { maxLength: MAX_EVENT_NAME, pattern: String.raw`^([^$][\s\S]*|\$errors|\$logs)?$` };

/** The name of a stream that can be read or deleted. */
export const READABLE_EVENT_NAME = { maxLength: MAX_EVENT_NAME, pattern: String.raw`^([^$][\s\S]*|\$errors|\$logs|\$in)?$` };

export const EVENT_ID = { pattern: String.raw`^\d+-\d+$`, example: '1763715600123-40960' };

const fieldNames = (description: string) => ({
  type: 'string',
  description: `${description} The response may then lack required fields.`,
});

/** `include` and `exclude`, which every query and body may have. */
export const SELECTED_FIELDS = {
  include: fieldNames('Comma-separated names of the fields to return; default: all.'),
  exclude: fieldNames('Comma-separated names of the fields to omit; applied after include.'),
};

const fieldsParameter = (name: keyof typeof SELECTED_FIELDS) => {
  const { type, description } = SELECTED_FIELDS[name];
  return ApiQuery({ name, required: false, description, schema: { type } });
};

/** `include` and `exclude`, which apply to every response that has `data`. */
export const SelectsFields = (): MethodDecorator & ClassDecorator =>
  applyDecorators(fieldsParameter('include'), fieldsParameter('exclude'));

/** `{data: …}`. The title becomes the name of the schema (see openapi-document.ts). */
const dataOf = (title: string, data: Schema): Schema => ({ title, type: 'object', required: ['data'], properties: { data } });

/** The response is `{data: <model>}`. */
export const RespondsWith = (model: Type): MethodDecorator =>
  applyDecorators(
    SelectsFields(),
    ApiExtraModels(model),
    ApiResponse({ status: 200, ...json('Success.', dataOf(`${model.name}Response`, reference(model))) }),
  );

/** The response is `{data: [<model>, …]}`. */
export const RespondsWithList = (model: Type): MethodDecorator =>
  applyDecorators(
    SelectsFields(),
    ApiExtraModels(model),
    ApiResponse({ status: 200, ...json('Success.', dataOf(`${model.name}List`, { type: 'array', items: reference(model) })) }),
  );

/** The response is `{page_info, data: [<model>, …]}`. */
export const RespondsWithPage = (model: Type): MethodDecorator =>
  applyDecorators(
    SelectsFields(),
    ApiExtraModels(model, PageInfo),
    ApiResponse({
      status: 200,
      ...json('A page, newest first.', {
        title: `${model.name}Page`,
        type: 'object',
        required: ['page_info', 'data'],
        properties: { page_info: reference(PageInfo), data: { type: 'array', items: reference(model) } },
      }),
    }),
  );

/** The response is 204, without a body. */
export const RespondsNoContent = (description: string): MethodDecorator =>
  applyDecorators(ApiResponse({ status: 204, description, headers: REQUEST_ID }));

/** The response is 202, `{data: <schema>}`: the work is accepted, not done. title: the name of the schema of the response. */
export const RespondsAccepted = (title: string, description: string, data: Schema = { type: 'object' }): MethodDecorator =>
  applyDecorators(SelectsFields(), RespondsInline(202, title, description, data));

/** The response has this status and is `{data: <schema>}`. title: the name of the schema of the response. */
export const RespondsInline = (status: number, title: string, description: string, data: Schema): MethodDecorator =>
  applyDecorators(ApiResponse({ status, ...json(description, dataOf(title, data)) }));

type Examples = Record<string, { summary: string; value: unknown }>;

/** The body, with an example for each way to use the route. */
export const Takes = (model: Type, examples: Examples): MethodDecorator => ApiBody({ type: model, examples });

/** A body that may be absent, because each of its fields may be. */
export const MayTake = (model: Type, examples: Examples): MethodDecorator => ApiBody({ type: model, examples, required: false });

const PROBLEMS: Record<number, string> = {
  400: 'The request is malformed; `errors` lists each bad field.',
  401: 'The API key is missing, malformed, unknown or revoked.',
  403: 'The scope of the API key does not allow it, or its account is suspended.',
  404: 'The resource does not exist, or belongs to another account.',
  405: 'The path does not support this method; the header Allow lists those that it supports.',
  409: 'The state of the resource does not allow it, or the first request with this Idempotency-Key is still in progress; Retry-After then states when to repeat it.',
  413: 'The body is too large.',
  415: 'The body is not JSON.',
  422: 'This Idempotency-Key was used with a different request, or code of the component has thrown an error.',
  429: 'Too many requests, or too much waiting data; Retry-After states when to retry, RateLimit which limit was reached.',
  500: 'Internal error.',
  503: 'Temporarily unavailable; retry later.',
  504: 'The request timed out. It may still take effect.',
};

const AUTHENTICATE = { 'WWW-Authenticate': { description: 'How to send the API key.', schema: { type: 'string' }, example: 'Bearer' } };

const RETRY_AFTER = { 'Retry-After': { description: 'In how many seconds to repeat the request.', schema: { type: 'integer' } } };

/** Those of limitRequests and sendBusy. */
const RATE_LIMIT = {
  RateLimit: {
    description:
      'What is left of the limit (`r`), and in how many seconds it starts again (`t`): `default` is the limit of requests per minute.',
    schema: { type: 'string' },
    example: '"default";r=0;t=17',
  },
  'RateLimit-Policy': {
    description: 'How many requests the limit allows (`q`) in how many seconds (`w`).',
    schema: { type: 'string' },
    example: '"default";q=600;w=60',
  },
  'RateLimit-Limit': { description: 'Only with a limit of requests per minute: the limit.', schema: { type: 'integer' } },
  'RateLimit-Remaining': { description: 'Only with a limit of requests per minute: what is left of it.', schema: { type: 'integer' } },
  'RateLimit-Reset': {
    description: 'Only with a limit of requests per minute: in how many seconds it starts again.',
    schema: { type: 'integer' },
  },
};

/** Of a POST, unless it is a problem: problems are shared with other methods. */
export const REPLAYED = {
  'Idempotency-Replayed': {
    description: 'This is the response to the first request with this Idempotency-Key; absent otherwise.',
    schema: { type: 'string', enum: ['true'] },
  },
};

/** The response to a problem with this status. */
export const problemResponse = (status: number) => ({
  description: PROBLEMS[status] ?? 'An error.',
  headers: {
    ...REQUEST_ID,
    ...(status === 401 ? AUTHENTICATE : {}),
    ...([409, 429, 503].includes(status) ? RETRY_AFTER : {}),
    ...(status === 429 ? RATE_LIMIT : {}),
  },
  content: { 'application/problem+json': { schema: { $ref: getSchemaPath(Problem) } } },
});

const problem = (status: number): ReturnType<typeof ApiResponse> => ApiResponse({ status, ...problemResponse(status) });

/** The errors that every route can return, in addition to its specific ones. */
export const Problems = (...statuses: number[]): MethodDecorator => applyDecorators(...statuses.map(problem));

/** The documentation that all routes of a controller share. */
export const Documented = (tag: string): ClassDecorator =>
  applyDecorators(
    ApiTags(tag),
    ApiBearerAuth(),
    ApiExtraModels(Problem),
    ...([401, 403, 429, 500, 503, 504].map(problem) as ClassDecorator[]),
  );
