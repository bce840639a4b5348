import { describe, expect, it } from '@jest/globals';
import { producersAttributes } from './cloud-event.js';

describe('the attributes that a producer has set', () => {
  const all = {
    specversion: '1.0',
    id: '1',
    source: '/shop',
    type: 'order',
    time: '2026-01-01T00:00:00Z',
    sluicestream: 'orders',
    subject: 's',
  };

  it.each([
    ['all but those that Sluice always sets', all, undefined, { id: '1', source: '/shop', type: 'order', subject: 's' }],
    ['none if Sluice sets all of them', { specversion: '1.0', sluicehops: '1' }, undefined, undefined],
    [
      'none that CloudEvents forbids to be empty',
      { id: '', type: '', subject: '', dataschema: '', datacontenttype: '', note: '' },
      undefined,
      { note: '' },
    ],
    ['none of empty ones', { id: '', source: '', type: '' }, undefined, undefined],
    ['no values that Sluice has set', all, { id: '1', source: '/shop', type: 'order' }, { subject: 's' }],
    [
      'others than Sluice has set',
      all,
      { id: '2', source: 'dc_1', type: 'default' },
      { id: '1', source: '/shop', type: 'order', subject: 's' },
    ],
  ])('are %s', (_, attributes, set, expected) => {
    expect(producersAttributes(attributes, set)).toEqual(expected);
  });
});
