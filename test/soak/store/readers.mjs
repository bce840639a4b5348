import { EventPagesRepository } from '../../../dist/apps/event-store/src/pages/event-pages.repository.js';
import { pageWindow } from '../../../dist/apps/event-store/src/pages/event-pages.service.js';

const EVERY_MS = 25;

/**
 * Reads pages continuously and checks their consistency; a database that is down is not an error.
 * @param {import('../../../dist/libs/database/src/index.js').Database} database
 * @param {import('./producer.mjs').Producer} producer
 * @param {() => number} random
 */
export function watchPages(database, producer, random) {
  const pages = new EventPagesRepository(database);
  const seen = { read: 0, lost: 0, doubled: 0, disordered: 0 };
  const look = async () => {
    const { id, deleted } = producer.pick();
    const { events } = await pages.page(id, '', pageWindow({ limit: 1 + Math.floor(random() * 100) }), { whole: true, maxBytes: 1e7 });
    const numbers = events.map(({ event }) => JSON.parse(event.toString()).number);
    seen.read += 1;
    seen.doubled += numbers.length - new Set(numbers).size;
    // An event between two visible events existed before the newer one: it is visible, too, or it was deleted.
    for (let index = 1; index < numbers.length; index++) {
      for (let between = numbers[index] + 1; between < numbers[index - 1]; between++) if (!deleted.has(between)) seen.lost += 1;
    }
    seen.disordered += numbers.filter((number, index) => index > 0 && number >= numbers[index - 1]).length;
  };
  let looking = Promise.resolve();
  const timer = setInterval(() => (looking = looking.then(look).catch(() => {})), EVERY_MS);
  return {
    stop: async () => {
      clearInterval(timer);
      await looking;
      return seen;
    },
  };
}
