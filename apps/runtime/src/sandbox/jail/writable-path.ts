/** The mount point of the nth writable folder in a jail with a separate root directory. */
export const writablePath = (index: number): string => `/writable/${index}`;
