const { options } = require('./.dependency-cruiser.cjs');

/** The rule between folders. Its configuration is separate because it leaves out files that may import everything. */
module.exports = {
  forbidden: [
    {
      name: 'no-circles-of-folders',
      comment: 'Two folders that import each other can only be read together: move the file that both need, or the one that composes them.',
      severity: 'error',
      scope: 'folder',
      from: {},
      to: { circular: true },
    },
  ],
  options: {
    ...options,
    exclude: {
      path: [
        'node_modules',
        // tests import what they test and what it needs
        '(spec|-for-tests)\\.ts$',
        // compose the folders of an app, and hold its configuration
        '^apps/[^/]+/src/[^/]+\\.ts$',
        // lists the entities of every folder
        '^apps/[^/]+/src/database/',
        // TODO: deleting a webhook deletes rows of deliveries and subscriptions
        '^apps/routing/',
      ],
    },
  },
};
