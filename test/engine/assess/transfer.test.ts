import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { OWN_FRAMEWORKS_MAX } from '../../../engine/admin/frameworks.ts'
import { AssessmentFileFault } from '../../../engine/assess/file-fault.ts'
import { FRAMEWORK_FILE_BYTES_MAX } from '../../../engine/assess/framework-file.ts'
import {
  type ImportOptions,
  readAssessment,
  readAssessmentFile,
  type TransferFormat,
  writeAssessment,
} from '../../../engine/assess/transfer.ts'
import type { AssessmentContent } from '../../../engine/assess/transfer-json.ts'
import { Fault } from '../../../engine/kernel/process/error-codes.ts'
import {
  ASSESSMENT_CATEGORIES_MAX,
  ASSESSMENT_FAULTS_NAMED_MAX,
  ASSESSMENT_FILE_BYTES_MAX,
  ASSESSMENT_ITEMS_MAX,
  ASSESSMENT_LINE_BYTES_MAX,
  ASSESSMENT_NOTE_BYTES_MAX,
  ASSESSMENTS_MAX,
  RECOMMENDATIONS_MAX,
} from '../../../engine/limits.ts'
import { anyContent } from '../../support/any-assessment.ts'
import { category, content, draft, item } from '../../support/assessments.ts'
import { REPOSITORY } from '../../support/programs.ts'
import * as fc from '../../support/property.ts'
import { cpuMsOf } from '../../support/wait.ts'

const HEADER = 'category,category_weight,item_id,item_title,item_weight,priority,answer,note,recommendation'
const ROW = 'Access,2,A.1,Doors are locked,1.5,1,partial,seen,Lock the doors.'

/** The file of an assessment with this content. */
function fileOf(given: AssessmentContent, format: TransferFormat): string {
  return writeAssessment(draft({ ...given }), given.categories, format)
}

/** What is read, without the lines about what is not. */
function contentOf(bytes: Uint8Array, options?: ImportOptions): AssessmentContent {
  const { skipped: _, errors: __, ...read } = readAssessment(bytes, options)
  return read
}

function readCsv(text: string | Uint8Array): AssessmentContent {
  return readAssessment(Buffer.from(text), { frameworkId: 'hipaa', title: 'Test' })
}

/** The lines of the fault that ends reading. */
function faultsOf(read: () => unknown): readonly string[] {
  try {
    read()
  } catch (error) {
    if (error instanceof AssessmentFileFault) return error.lines
    throw error
  }
  return []
}

t.test('an exported assessment can be imported unchanged', async (t) => {
  fc.assert(
    fc.property(anyContent, fc.constantFrom('json' as const, 'csv' as const), (given, format) => {
      const bytes = Buffer.from(fileOf(given, format))
      t.same(contentOf(bytes, { frameworkId: given.frameworkId, title: given.title }), given)
    }),
    { numRuns: 500 },
  )
})

t.test('no exported cell is a formula', async (t) => {
  fc.assert(
    fc.property(anyContent, (given) => {
      const titles = given.categories.flatMap(({ items }) => items.map(({ title }) => title))
      const text = fileOf(given, 'csv')
      // Every cell follows a separator, a line feed or a quote. Notes with line feeds are excluded.
      if (given.categories.some(({ items }) => items.some(({ note }) => note.includes('\n')))) return
      for (const [at, row] of text.split('\r\n').slice(1, -1).entries()) {
        t.notMatch(row, /^"?[=+\-@]/, row)
        if (/^[=+\-@]/.test(titles[at] ?? '')) t.match(row, /,"?'[=+\-@]/)
      }
    }),
  )
})

t.test('a CSV file has the documented format', async (t) => {
  const text = fileOf(content('hipaa', { A: 'partial', B: 37 }), 'csv')
  t.equal(
    text,
    [`\ufeff${HEADER}`, 'All,1,A,Check A,1,3,partial,,Do A.', 'All,1,B,Check B,1,3,37,,Do B.', ''].join('\r\n'),
  )
})

const ACCEPTED: Readonly<Record<string, string>> = {
  'as exported': `${HEADER}\n${ROW}\n`,
  'without a line feed at the end': `${HEADER}\n${ROW}`,
  'with a byte order mark and CRLF': `\ufeff${HEADER}\r\n${ROW}\r\n`,
  'with CR only': `${HEADER}\r${ROW}\r`,
  'with semicolons and a decimal comma': `${HEADER}\n${ROW.replace('1.5', '1,5')}`.replaceAll(/,(?!5)/g, ';'),
  'with tabs': `${HEADER}\n${ROW}`.replaceAll(',', '\t'),
  'with all cells quoted': `${HEADER}\n${ROW}`.replaceAll(/[^,\n]+/g, '"$&"'),
  'with blanks around cells': `${HEADER}\n${ROW}`.replaceAll(',', ' , '),
  'with column names in upper case': `${HEADER.toUpperCase()}\n${ROW}`,
  'with the answer in upper case': `${HEADER}\n${ROW.replace('partial', 'PARTIAL')}`,
  'with empty rows': `\n${HEADER}\n\n,,,,,,,,\n${ROW}\n\n`,
  'with columns in another order':
    'answer,note,recommendation,priority,item_weight,item_title,item_id,category_weight,category\npartial,seen,Lock the doors.,1,1.5,Doors are locked,A.1,2,Access',
}
for (const [name, text] of Object.entries(ACCEPTED)) {
  t.test(`CSV ${name} is read`, async (t) => {
    t.same(readCsv(text).categories, [
      {
        name: 'Access',
        weight: 2,
        items: [
          {
            ...{ id: 'A.1', title: 'Doors are locked', weight: 1.5, priority: 1 },
            ...{ recommendation: 'Lock the doors.', answer: 'partial', note: 'seen' },
          },
        ],
      },
    ])
  })
}

t.test("an empty answer is unanswered, a note may be missing, and a category's rows may be scattered", async (t) => {
  const { categories } = readCsv(
    [
      HEADER.replace('note,', ''),
      'A,1,1,One,1,1,,Do one.',
      'B,1,2,Two,1,1,7,Do two.',
      'A,1,3,Three,1,1,yes,Do three.',
    ].join('\n'),
  )
  t.same(
    categories.map(({ name, items }) => [name, items.map(({ id, answer, note }) => [id, answer, note])]),
    [
      [
        'A',
        [
          ['1', 'unanswered', ''],
          ['3', 'yes', ''],
        ],
      ],
      ['B', [['2', 7, '']]],
    ],
  )
})

function rowWith(column: string, cell: string): string {
  const at = HEADER.split(',').indexOf(column)
  return ROW.split(',')
    .map((each, index) => (index === at ? cell : each))
    .join(',')
}

const REFUSED_CSV: Readonly<Record<string, readonly [text: string | Uint8Array, lines: readonly (string | RegExp)[]]>> =
  {
    'an empty file': ['', ['row 1: found nothing, expected a row of column names']],
    'only column names': [HEADER, ['row 2: found nothing, expected a row for each item']],
    'no column names': [
      ROW,
      [/^row 1: there is no column "Access"$/, ...Array(8).fill(/no column/), /found no column category, /],
    ],
    'a missing column': [`${HEADER.replace('priority,', '')}\n${ROW}`, ['row 1: found no column priority']],
    'a duplicate column': [`${HEADER},note\n${ROW}`, ['row 1: duplicate column note']],
    'an invalid weight': [
      `${HEADER}\n${rowWith('category_weight', '0')}`,
      ['row 2, column category_weight: found 0, expected a number above 0, up to 1000, with at most three decimals'],
    ],
    'a weight with four decimals': [
      `${HEADER}\n${rowWith('item_weight', '0.1234')}`,
      [/^row 2, column item_weight: found 0.1234, expected/],
    ],
    'a negative weight': [
      `${HEADER}\n${rowWith('item_weight', '-1')}`,
      [/^row 2, column item_weight: found "-1", expected/],
    ],
    'a priority out of range': [
      `${HEADER}\n${rowWith('priority', '')}`,
      ['row 2, column priority: found nothing, expected a whole number from 1 (highest) to 5'],
    ],
    'an invalid answer': [
      `${HEADER}\n${rowWith('answer', 'maybe')}`,
      [
        'row 2, column answer: found "maybe", expected yes, partial, no, not_applicable, unanswered or a whole number from 0 to 100',
      ],
    ],
    'an answer above 100': [`${HEADER}\n${rowWith('answer', '101')}`, [/^row 2, column answer: found 101, /]],
    'an id with a blank': [`${HEADER}\n${rowWith('item_id', 'A 1')}`, [/^row 2, column item_id: found "A 1", /]],
    'a title that is too long': [
      `${HEADER}\n${rowWith('item_title', 'x'.repeat(ASSESSMENT_LINE_BYTES_MAX + 1))}`,
      [/^row 2, column item_title: found "x{59}\.\.\., expected one line of 1 to 500 bytes/],
    ],
    'a note that is too long': [
      `${HEADER}\n${rowWith('note', 'ü'.repeat(ASSESSMENT_NOTE_BYTES_MAX / 2 + 1))}`,
      [/^row 2, column note: found/],
    ],
    'a title with a control character': [
      `${HEADER}\n${rowWith('item_title', 'a\u0007b')}`,
      [/^row 2, column item_title: found "a\\u0007b"/],
    ],
    'a duplicate item': [
      `${HEADER}\n${ROW}\n${rowWith('item_id', 'a.1')}`,
      ['row 3, column item_id: found "a.1", expected an id that is not in row 2'],
    ],
    'a category with two weights': [
      `${HEADER}\n${ROW}\n${rowWith('item_id', 'A.2').replace(',2,', ',3,')}`,
      ['row 3, column category_weight: found 3, expected 2 as in row 2'],
    ],
    'an extra cell': [`${HEADER}\n${ROW},more`, ['row 2: found "more" in cell 10, expected a column name above it']],
    'a quote inside a cell': [`${HEADER}\n${rowWith('note', 'a"b')}`, [/^line 2: found a quote inside a cell/]],
    'an unclosed quote': [`${HEADER}\n${ROW}\n"A`, ['line 3: found a quote that is opened and never closed']],
    'text after a quoted cell': [`${HEADER}\n"A"x${ROW}`, [/^line 2: found text after a quoted cell/]],
    'Latin-1': [
      Buffer.from(`${HEADER}\n${ROW}\nB\xfcro,1`, 'latin1'),
      ['line 3: found bytes that are not UTF-8; save it as UTF-8'],
    ],
    'too many rows': [`${HEADER}${`\n${ROW}`.repeat(ASSESSMENT_ITEMS_MAX + 1)}`, [/^found more than 2000 rows/]],
    'an incomplete row': [`${HEADER}\n"${'x'.repeat(100_000)}`, [/^line 2: found a row of more than 65536 bytes/]],
    'several faults': [
      `${HEADER}\n${rowWith('answer', '?')}\n\n${rowWith('priority', '9')}\n"Two\nlines",x,B,T,1,1,no,,R`,
      [
        /^row 2, column answer/,
        /^row 4, column priority/,
        /^row 5, column category: /,
        /^row 5, column category_weight: /,
      ],
    ],
  }
for (const [name, [text, lines]] of Object.entries(REFUSED_CSV)) {
  t.test(`CSV: ${name} is rejected`, async (t) => {
    const found = faultsOf(() => readCsv(text))
    t.equal(found.length, lines.length, found.join('\n'))
    for (const [at, line] of lines.entries()) t.match(found[at], line)
  })
}

t.test('a fault has the row of a spreadsheet, and the line if notes have line breaks', async (t) => {
  for (const end of ['\n', '\r\n']) {
    const text = [HEADER, rowWith('note', `"one${end}two${end}three"`), '', rowWith('answer', '?')].join(end)
    t.match(
      faultsOf(() => readCsv(text)),
      [/^row 4 \(line 6\), column answer/],
    )
  }
})

t.test('right rows can be read although others are wrong', async (t) => {
  const row = (id: string, answer: string, weight = '1'): string => `A,2,${id},T,${weight},1,${answer},seen,R`
  const text = [HEADER, row('1', 'yes'), row('2', 'maybe'), row('3', 'no', 'x'), row('1', 'no'), row('4', '37')].join(
    '\n',
  )
  const { categories, errors } = readAssessment(Buffer.from(text), { frameworkId: 'hipaa', keepRightRows: true })
  t.same(
    categories.flatMap(({ items }) => items.map(({ id, answer, note }) => [id, answer, note])),
    [
      ['1', 'yes', 'seen'],
      ['2', 'unanswered', ''],
      ['4', 37, 'seen'],
    ],
  )
  t.match(errors, [
    /^row 3, column answer: found "maybe", expected yes, /,
    /^row 4, column item_weight: found "x", expected a number above 0/,
    'row 5, column item_id: found "1", expected an id that is not in row 2',
  ])
  t.equal(faultsOf(() => readCsv(text)).length, 3, 'by default nothing is read')
})

t.test('a file without a right row is rejected', async (t) => {
  const text = [HEADER, rowWith('item_weight', 'x'), rowWith('priority', '9')].join('\n')
  const read = (): unknown => readAssessment(Buffer.from(text), { frameworkId: 'hipaa', keepRightRows: true })
  t.equal(faultsOf(read).length, 2)
})

t.test('each wrong row costs only itself', async (t) => {
  const cells = fc.array(fc.constantFrom('right', 'answer', 'weight'), { minLength: 1, maxLength: 30 })
  fc.assert(
    fc.property(cells, (kinds) => {
      const rows = kinds.map((kind, at) => {
        return `A,1,I${at},T,${kind === 'weight' ? 'x' : 1},1,${kind === 'answer' ? '?' : 'yes'},,R`
      })
      const kept = kinds.flatMap((kind, at) =>
        kind === 'weight' ? [] : [[`I${at}`, kind === 'right' ? 'yes' : 'unanswered']],
      )
      const bytes = Buffer.from([HEADER, ...rows].join('\n'))
      if (kept.length === 0) return
      const { categories, errors } = readAssessment(bytes, { frameworkId: 'hipaa', keepRightRows: true })
      t.same(
        categories[0]?.items.map(({ id, answer }) => [id, answer]),
        kept,
      )
      t.equal(errors.length, kinds.filter((kind) => kind !== 'right').length)
    }),
  )
})

t.test('only the first of many faults are listed', async (t) => {
  const text = [
    HEADER,
    ...Array.from({ length: 30 }, (_, at) => rowWith('item_id', `A.${at}`).replace('partial', '?')),
  ].join('\n')
  const lines = faultsOf(() => readCsv(text))
  t.equal(lines.length, ASSESSMENT_FAULTS_NAMED_MAX + 1)
  t.equal(lines.at(-1), 'and 10 more')
})

const JSON_FILE = { version: 1, framework_id: 'hipaa', title: 'T', categories: [category('C', 1, [item('A', 'yes')])] }
const REFUSED_JSON: Readonly<
  Record<string, readonly [change: (file: Record<string, unknown>) => unknown, lines: readonly RegExp[]]>
> = {
  'another version': [(file) => ({ ...file, version: 2 }), [/^version: found 2, expected 1$/]],
  'an unknown framework': [
    (file) => ({ ...file, framework_id: 'cis' }),
    [/^framework_id: found "cis", expected one of ai-security, /],
  ],
  'no categories': [
    (file) => ({ ...file, categories: [] }),
    [/^categories: found a list of 0, expected at least one category$/],
  ],
  'categories that are not a list': [
    (file) => ({ ...file, categories: {} }),
    [/^categories: found an object, expected a list of categories$/],
  ],
  'an additional field': [(file) => ({ ...file, colour: 'red' }), [/^colour: there is no such field$/]],
  'an additional field in an item': [
    (file) => ({ ...file, categories: [category('C', 1, [{ ...item('A', 1), x: 1 } as never])] }),
    [/^categories\[0\]\.items\[0\]\.x: there is no such field$/],
  ],
  'an invalid answer': [
    (file) => ({ ...file, categories: [category('C', 1, [item('A', 'ja' as never), item('B', 1.5)])] }),
    [/^categories\[0\]\.items\[0\]\.answer: found "ja", expected yes/, /items\[1\]\.answer: found 1.5/],
  ],
  'half a surrogate pair': [(file) => ({ ...file, title: '\ud800' }), [/^title: found "\\ud800", expected one line/]],
  'a duplicate item': [
    (file) => ({ ...file, categories: [category('C', 1, [item('A', 1)]), category('D', 1, [item('a', 1)])] }),
    [/^categories\[1\]\.items\[0\]\.id: found "a", which is already at categories\[0\]/],
  ],
  'too many items in all': [
    (file) => ({
      ...file,
      categories: [0, 1].map((at) =>
        category(
          `C${at}`,
          1,
          Array.from({ length: 1001 }, (_, index) => item(`${at}.${index}`, 1)),
        ),
      ),
    }),
    [/^categories: found 2002 items, expected at most 2000$/],
  ],
}
for (const [name, [change, lines]] of Object.entries(REFUSED_JSON)) {
  t.test(`JSON: ${name} is rejected`, async (t) => {
    const found = faultsOf(() => readAssessment(Buffer.from(JSON.stringify(change(JSON_FILE)))))
    t.equal(found.length, lines.length, found.join('\n'))
    for (const [at, line] of lines.entries()) t.match(found[at], line)
  })
}

t.test('truncated JSON is rejected with its position if Node reports one', async (t) => {
  t.match(
    faultsOf(() => readAssessment(Buffer.from('{\n "version": 1 2'))),
    [/^line 2, column 15: not JSON: Expected/],
  )
  t.match(
    faultsOf(() => readAssessment(Buffer.from('{"a": x\n}'))),
    [/not JSON: Unexpected token/],
  )
  t.match(
    faultsOf(() => readAssessment(Buffer.from(`{"a":${'['.repeat(1_000_000)}`))),
    [/not JSON/],
  )
})

t.test('the framework is given once, and must match', async (t) => {
  const json = Buffer.from(JSON.stringify(JSON_FILE))
  t.match(readAssessment(json), { frameworkId: 'hipaa', title: 'T' })
  t.match(readAssessment(json, { frameworkId: 'hipaa', title: 'Other' }), { title: 'Other' })
  t.throws(() => readAssessment(json, { frameworkId: 'soc-2' }), {
    code: 'USAGE',
    message: /is soc-2, the file is .* hipaa/,
  })
  t.throws(() => readAssessment(Buffer.from(`${HEADER}\n${ROW}`)), {
    code: 'USAGE',
    message: /--framework is required/,
  })
})

t.test('any bytes and any change of a good file give a Fault or an assessment', async (t) => {
  const good = [
    Buffer.from(fileOf(content('hipaa', { A: 'partial', B: 37 }), 'csv')),
    Buffer.from(JSON.stringify(JSON_FILE)),
  ]
  const changed = fc
    .tuple(
      fc.constantFrom(...good),
      fc.array(fc.tuple(fc.nat(600), fc.integer({ min: 0, max: 255 })), { maxLength: 6 }),
    )
    .map(([bytes, changes]) => {
      const copy = Buffer.from(bytes)
      for (const [at, byte] of changes) copy[at % copy.length] = byte
      return copy
    })
  const outcomes = { read: 0, refused: 0 }
  const attempt = (bytes: Uint8Array): void => {
    try {
      readAssessment(bytes, { frameworkId: 'hipaa' })
      outcomes.read++
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      outcomes.refused++
    }
  }
  fc.assert(fc.property(fc.oneof(fc.uint8Array({ maxLength: 300 }), changed), attempt), { numRuns: 5000 })
  fc.assert(
    fc.property(fc.json(), (json) => attempt(Buffer.from(json))),
    { numRuns: 1000 },
  )
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom('"', ',', ';', '\n', '\r', "'", '=', 'a') }), (text) =>
      attempt(Buffer.from(`${HEADER}\n${text}`)),
    ),
    {
      numRuns: 2000,
    },
  )
  t.ok(outcomes.read > 50 && outcomes.refused > 1000, JSON.stringify(outcomes))
})

t.test('a file with very many errors is rejected quickly', async (t) => {
  const many = (what: string): string => Array.from({ length: 2_000_000 }, () => what).join()
  const keys = Array.from({ length: 500_000 }, (_, at) => `"k${at}":1`).join()
  const rows: readonly (readonly [string, RegExp])[] = [
    [`{"categories":[{"items":[${many('{}')}]}]}`, /^categories: found 2000000 items, expected at most 2000$/],
    [`{"categories":[${many('{}')}]}`, /^categories: found a list of 2000000, expected at most 100 categories$/],
    [`{${keys}}`, /^version: found nothing/],
  ]
  for (const [text, line] of rows) {
    const bytes = Buffer.from(text)
    let faults: readonly string[] = []
    const tookMs = cpuMsOf(() => {
      faults = faultsOf(() => readAssessment(bytes))
    })
    t.match(faults[0], line)
    t.ok(tookMs < 10_000)
  }
})

t.test('a long file takes linear time', async (t) => {
  const seconds = (bytes: Uint8Array): number => {
    return cpuMsOf(() => t.ok(faultsOf(() => readCsv(bytes)).length > 0)) / 1000
  }
  for (const text of ['\n', ',', '"', `${ROW}\n`, `"${'\n'.repeat(100)}"\n`, 'x;'])
    t.ok(
      seconds(Buffer.from(text.repeat(ASSESSMENT_FILE_BYTES_MAX / 4 / text.length))) < 2.5,
      JSON.stringify(text.slice(0, 9)),
    )
})

t.test('docs/reference/assessments.md lists all limits', async (t) => {
  const page = readFileSync(join(REPOSITORY, 'docs/reference/assessments.md'), 'utf8')
  const bounds = {
    'Assessments per organization': ASSESSMENTS_MAX,
    'Categories per assessment': ASSESSMENT_CATEGORIES_MAX,
    'Items per assessment': ASSESSMENT_ITEMS_MAX,
    'Bytes of one line of text': ASSESSMENT_LINE_BYTES_MAX,
    'Bytes of a note': ASSESSMENT_NOTE_BYTES_MAX,
  }
  for (const [name, bound] of Object.entries(bounds)) t.match(page, `| ${name} | ${bound.toLocaleString('en')} |`)
  t.match(page, `| Own frameworks per organization | ${OWN_FRAMEWORKS_MAX} |`)
  t.match(page, `| Framework file | ${FRAMEWORK_FILE_BYTES_MAX / 1024 / 1024} MiB; 1 MiB in the console |`)
  t.match(page, `| File | ${ASSESSMENT_FILE_BYTES_MAX / 1024 / 1024} MiB |`)
  t.match(page, `An organization has at most ${RECOMMENDATIONS_MAX.toLocaleString('en')}`)
  t.match(page, new RegExp(`up to ${ASSESSMENT_FAULTS_NAMED_MAX}\\s+lines`))
})

t.test('a file that is missing, a directory or too large is rejected', async (t) => {
  const directory = t.testdir({ large: 'x'.repeat(ASSESSMENT_FILE_BYTES_MAX + 1), small: 'x' })
  await t.rejects(readAssessmentFile(`${directory}/none`), { code: 'ASSESSMENT_FILE', message: /none: no such file$/ })
  await t.rejects(readAssessmentFile(directory), { code: 'ASSESSMENT_FILE', message: /directory/ })
  await t.rejects(readAssessmentFile(`${directory}/large`), { code: 'ASSESSMENT_FILE', message: /larger than/ })
  t.equal(Buffer.from(await readAssessmentFile(`${directory}/small`)).toString(), 'x')
})
