/** An object that throws whatever is done with it. */
export function hostile(): never {
  const refuse = (): never => {
    throw new Error('do not touch')
  }
  return new Proxy(() => undefined, { get: refuse, has: refuse, getPrototypeOf: refuse, ownKeys: refuse }) as never
}
