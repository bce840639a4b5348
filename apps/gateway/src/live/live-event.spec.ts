import { describe, expect, it } from '@jest/globals';
import { commentFrame, eventFrame } from './live-event.js';

describe('a frame of Server-Sent Events', () => {
  it.each([
    ['of JSON on one line', '{"a":"\\n"}', 'id: 1-2\ndata: {"a":"\\n"}\n\n'],
    ['of JSON on several lines', '{\n  "a": 1\r\n}', 'id: 1-2\ndata: {\ndata:   "a": 1\ndata: }\n\n'],
    ['of JSON with old line ends', '[1,\r\r2]', 'id: 1-2\ndata: [1,\ndata: \ndata: 2]\n\n'],
    ['in UTF-8', '"é"', 'id: 1-2\ndata: "é"\n\n'],
  ])('%s', (_, json, frame) => expect(eventFrame('1-2', json).toString('utf8')).toBe(frame));

  it('a comment has neither an id nor data', () => expect(commentFrame('still here').toString()).toBe(': still here\n\n'));
});
