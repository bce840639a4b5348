/** A type of the DOM that the generated code uses and Node's types lack. */
type BodyInit = NonNullable<RequestInit['body']>;
