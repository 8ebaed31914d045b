/**
 * The folder of a test whose programs run until its end. tap removes a folder before the teardowns,
 * while programs still write there, unless a teardown was registered before testdir().
 */
export function testFolder(t: { testdir(): string; teardown(work: () => unknown): void }): string {
  t.teardown(() => {})
  return t.testdir()
}
