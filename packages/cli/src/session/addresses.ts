import { isIPv4 } from 'node:net';

/** Whether the text of a URL shortens an IPv4 address: a URL parser reads the host 4031 as 0.0.15.191, another machine, but people mean a port. */
export const shortensAddress = (text: string, { hostname }: URL): boolean => isIPv4(hostname) && !text.includes(hostname);
