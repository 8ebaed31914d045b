/** A framework file with these items, each on ten lines. The first item begins at line 6. */
export function frameworkFile(
  items: readonly Readonly<Record<string, unknown>>[],
  { id = 'own-acme', name = 'Acme baseline' }: { readonly id?: string; readonly name?: string } = {},
): string {
  const texts = {
    title: 'Owners',
    question: 'Does every account have an owner?',
    yes: 'Each account names a person.',
    partial: 'Service accounts have no owner.',
    no: 'Nobody knows.',
    evidence: 'List of accounts',
    recommendation: 'Give each account an owner.',
  }
  const lines = items.flatMap((item) =>
    Object.entries({ ...texts, ...item }).map(([key, value], at) => {
      return `${at === 0 ? '      - ' : '        '}${key}: ${JSON.stringify(value)}`
    }),
  )
  return [`id: ${id}`, `name: ${name}`, 'categories:', '  - name: Accounts', '    items:', ...lines, ''].join('\n')
}
