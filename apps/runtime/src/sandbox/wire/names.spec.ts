import { expect, it } from '@jest/globals';
import { emittedStreamProblem } from '#events';
import { streamNameProblem } from './names.js';

it.each(['', 'default', 'mine', 'a*', 'a$', '$errors', '$logs', '$in', '$', '$foo', '$Errors', '*', 'a\0', '\ud800', '😀'])(
  'the process of a component accepts the stream %j exactly if the platform does',
  (name) => expect(streamNameProblem(name) === null).toBe(emittedStreamProblem(name) === null),
);
