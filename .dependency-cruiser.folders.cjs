const { options } = require('./.dependency-cruiser.cjs');

/** The rule for folders. It has a file of its own because it ignores tests, which import whatever they set up. */
module.exports = {
  forbidden: [
    {
      name: 'no-folder-circles',
      comment: 'Two folders that import each other are one feature: nobody can read or change one of them alone.',
      severity: 'error',
      scope: 'folder',
      from: { path: '^apps/(routing|event-store|runtime)/src/.+' },
      to: { circular: true },
    },
  ],
  options: { ...options, exclude: { path: 'spec\\.ts$|-for-tests\\.ts$' } },
};
