const { options } = require('./.dependency-cruiser.cjs');

/** The rule for folders. Its file is separate because it leaves out files that may import everything. */
module.exports = {
  forbidden: [
    {
      name: 'no-folder-circles',
      comment:
        'Two folders that import each other are one feature: nobody can read or change one of them alone. Move the file that both need, or the one that composes them.',
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
        // tests import whatever they set up
        '(spec|-for-tests)\\.(ts|mjs)$',
        // compose the folders of an app, and hold its configuration
        '^apps/[^/]+/src/[^/]+\\.ts$',
        // lists the entities of every folder
        '^apps/[^/]+/src/database/',
      ],
    },
  },
};
