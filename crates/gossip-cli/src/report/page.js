'use strict';
(() => {
  const data = (id) => JSON.parse(document.getElementById(id).textContent);
  const findings = data('findings');
  const about = data('about');
  const LEVELS = ['critical', 'high', 'medium', 'low'];
  const SHOWN = 500;

  const make = (tag, props, ...children) => {
    const node = Object.assign(document.createElement(tag), props);
    node.append(...children);
    return node;
  };
  const count = (n, what) => `${n} ${what}${n === 1 ? '' : 's'}`;

  const state = { text: '', rule: '', levels: new Set(LEVELS), sort: 'severity', down: false, limit: SHOWN };
  const value = {
    severity: (f) => LEVELS.indexOf(f.severity),
    confidence: (f) => LEVELS.indexOf(f.confidence),
    rule: (f) => f.rule,
    path: (f) => f.path,
  };
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  const summary = make('p', { id: 'summary' });
  const body = make('tbody', { id: 'rows' });
  const more = make('button', { id: 'more', textContent: 'Show more' });
  const heads = {};

  const detail = (f) => {
    const list = make('dl', {});
    const entry = (name, node) => list.append(make('dt', { textContent: name }), make('dd', {}, node));
    entry('What', f.description || f.rule);
    entry('Where', make('code', { textContent: `${f.path}:${f.line}:${f.column}` }));
    entry('Line', make('code', { textContent: f.context }));
    entry('Why', `it ${f.why}`);
    if (f.commit) entry('Commit', `${f.commit} by ${f.author}, ${f.date}`);
    if (f.versions) {
      const oldest = f.oldest_version;
      const from = oldest ? `, from ${oldest.commit} by ${oldest.author}, ${oldest.date} on, and in the work tree` : '';
      entry('History', `in ${count(f.versions, 'version')}${from}`);
    }
    entry('What to do', make('ul', {}, ...f.remedy.map((step) => make('li', { textContent: step }))));
    entry('Fingerprint', make('code', { textContent: f.fingerprint }));
    return make('tr', { className: 'detail' }, make('td', { colSpan: 4 }, list));
  };

  const row = (f) => {
    const place = make('td', {}, make('code', { textContent: `${f.path}:${f.line}:${f.column}` }),
      make('code', { className: 'context', textContent: f.context }));
    const node = make('tr', { className: 'finding', tabIndex: 0 },
      make('td', { className: f.severity, textContent: f.severity }),
      make('td', { textContent: f.confidence }),
      make('td', { textContent: f.rule }), place);
    const toggle = () => {
      if (node.nextSibling && node.nextSibling.className === 'detail') node.nextSibling.remove();
      else node.after(detail(f));
    };
    node.addEventListener('click', toggle);
    node.addEventListener('keydown', (event) => { if (event.key === 'Enter') toggle(); });
    return node;
  };

  const draw = () => {
    const text = state.text.toLowerCase();
    const wanted = findings.filter((f) => state.levels.has(f.severity)
      && (!state.rule || f.rule === state.rule)
      && (!text || [f.path, f.rule, f.description, f.context].some((s) => s.toLowerCase().includes(text))));
    const key = value[state.sort];
    wanted.sort((a, b) => (state.down ? -1 : 1) * compare(key(a), key(b))
      || compare(a.path, b.path) || a.line - b.line);
    body.replaceChildren(...wanted.slice(0, state.limit).map(row));
    more.hidden = wanted.length <= state.limit;
    summary.textContent = wanted.length === findings.length
      ? count(findings.length, 'finding') : `${wanted.length} of ${count(findings.length, 'finding')}`;
    for (const [name, head] of Object.entries(heads)) {
      head.parentNode.ariaSort = name !== state.sort ? 'none' : state.down ? 'descending' : 'ascending';
      head.textContent = name + (name !== state.sort ? '' : state.down ? ' ▼' : ' ▲');
    }
  };
  const change = (what) => { Object.assign(state, what, { limit: SHOWN }); draw(); };

  const search = make('input', { type: 'search', id: 'search', placeholder: 'Path, rule or text' });
  search.addEventListener('input', () => change({ text: search.value }));
  const rules = [...new Set(findings.map((f) => f.rule))].sort();
  const rule = make('select', { id: 'rule' }, make('option', { value: '', textContent: 'All rules' }),
    ...rules.map((id) => make('option', { value: id, textContent: id })));
  rule.addEventListener('change', () => change({ rule: rule.value }));
  const levels = LEVELS.map((level) => {
    const box = make('input', { type: 'checkbox', id: level, checked: true });
    box.addEventListener('change', () => {
      if (box.checked) state.levels.add(level); else state.levels.delete(level);
      change({});
    });
    return make('label', { className: level }, box, level);
  });
  const head = make('tr', {});
  for (const name of Object.keys(value)) {
    heads[name] = make('button', { id: `sort-${name}` });
    heads[name].addEventListener('click', () => change({ sort: name, down: state.sort === name && !state.down }));
    head.append(make('th', {}, heads[name]));
  }
  more.addEventListener('click', () => { state.limit += SHOWN; draw(); });

  const list = (name, parts) => (parts.length ? [make('p', { textContent: `${name}: ${parts.join(', ')}` })] : []);
  document.getElementById('page').append(
    make('h1', { textContent: 'Secrets that gossip found' }),
    make('p', { textContent: `${about.target}, run ${about.run}, ${about.started}, ${about.status}: `
      + `${count(about.items, 'item')}, ${about.bytes} bytes` }),
    ...list('Not scanned', about.skipped), ...list('Could not be read', about.failed),
    make('div', { className: 'filters' }, search, rule, ...levels), summary,
    make('table', {}, make('thead', {}, head), body), more);
  draw();
})();
