import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { newId } from '#contracts';
import { comparePlaces } from '#events';
import { deliveryIdOf, placeOfDelivery } from './delivery-id.js';

const place = fc.record({ ms: fc.nat({ max: 99_999_999_999_999 }), seq: fc.maxSafeNat() });
const WEBHOOK = newId('webhook');
const OTHER = newId('webhook');

describe("a delivery's id", () => {
  it('stands for the place of its event', () => {
    fc.assert(fc.property(place, (each) => expect(placeOfDelivery(deliveryIdOf(each, WEBHOOK), WEBHOOK)).toEqual(each)));
  });

  it('differs from that of the same event at another webhook, and is not found there', () => {
    fc.assert(
      fc.property(place, (each) => {
        expect(deliveryIdOf(each, WEBHOOK)).not.toBe(deliveryIdOf(each, OTHER));
        expect(placeOfDelivery(deliveryIdOf(each, WEBHOOK), OTHER)).toBeNull();
      }),
    );
  });

  it('sorts as its event does', () => {
    fc.assert(
      fc.property(place, place, (a, b) => {
        const [idA, idB] = [deliveryIdOf(a, WEBHOOK), deliveryIdOf(b, WEBHOOK)];
        expect(Math.sign(comparePlaces(a, b))).toBe(idA < idB ? -1 : idA > idB ? 1 : 0);
      }),
    );
  });

  it.each(['', 'del_', 'del_1', 'wh_000000000000000000', 'del_00000000000000000', 'del_zzzzzzzzzzzzzzzzzz', 'del_0000000000000000-0'])(
    'is not %j',
    (id) => {
      expect(placeOfDelivery(id, WEBHOOK)).toBeNull();
    },
  );
});
