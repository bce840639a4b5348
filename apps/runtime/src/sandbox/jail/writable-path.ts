/** The mount point of the nth writable folder in a jail that has a root directory of its own. */
export const writablePath = (index: number): string => `/writable/${index}`;
