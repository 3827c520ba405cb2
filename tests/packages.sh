#!/bin/sh
# In a bare Debian, as root: installs the packages of a folder, tries them as a newcomer does, and removes them; nothing of
# them may stay. Then the packages' own tests (debian/tests) run. script/fresh --packages runs it.
#   tests/packages.sh FOLDER
set -eu
packages=$(cd "$1" && pwd)
own_tests=$(cd "$(dirname "$0")/../debian/tests" && pwd)
export DEBIAN_FRONTEND=noninteractive
work=$(mktemp -d)
cd "$work"

fail() {
  echo "tests/packages.sh: $*" >&2
  exit 1
}
files() { find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /run -o -path /var/cache -o -path /var/log \
  -o -path /var/lib/apt -o -path /var/lib/dpkg -o -path "$packages" -o -path /etc/ld.so.cache \) -prune -o -print | sort; }

apt-get update -q >update.log 2>&1 || fail "apt-get update: $(tail -n 1 update.log)"
files >before
start=$(date +%s)
apt-get install -q -y --no-install-recommends "$packages"/tacho_*.deb "$packages"/tacho-record_*.deb "$packages"/tacho-report_*.deb \
  >install.log 2>&1 || { cat install.log; fail "apt-get install failed"; }
installed=$(($(date +%s) - start))
tacho record -g -o busy.data -- sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i + 1)); done'
tacho flamegraph -i busy.data -o busy.svg
echo "installed after $installed s, the first flame graph after $(($(date +%s) - start)) s"

grep -q '<svg' busy.svg || fail "no flame graph"
tacho report -i busy.data --no-children -s comm | grep -q ' sh ' || fail "the report does not show sh"
tacho page -i busy.data -o busy.html
tacho record -e open -o open.data -- cat /etc/passwd >/dev/null
tacho table -i open.data --by path | grep -q /etc/passwd || fail "the recorder open shows nothing"
tacho help | grep -q '^Compare' || fail "tacho help"
[ "$(tacho complete flam | cut -f 1)" = flamegraph ] || fail "completion"
bash --norc -c '. /usr/share/bash-completion/completions/tacho; COMP_LINE="tacho flam" COMP_POINT=10 COMP_WORDS=(tacho flam)
  COMP_CWORD=1; _tacho; [ "${COMPREPLY[*]}" = flamegraph ]' || fail "completion in bash"
dpkg -L tacho tacho-record tacho-report | grep '/man1/' >pages
for page in $(tacho help | sed -n 's/^  \([a-z]*\)  .*/\1/p') record; do
  grep -q "/tacho-$page.1.gz\$" pages || fail "no manual page of tacho $page"
done
dpkg-query -W -f '${Package} ${Installed-Size} KiB\n' tacho tacho-record tacho-report

apt-get purge -q -y --autoremove tacho tacho-record tacho-report >purge.log 2>&1 || { cat purge.log; fail "purge failed"; }
files >after
diff before after >left || { cat left; fail "removal changed what was there"; }
echo "removed, and nothing is left"

needed=$(sed -n 's/^Depends: //p' "$own_tests/control" | tr -d ',' | tr ' ' '\n' | grep -v '^tacho' | sort -u)
# shellcheck disable=SC2046,SC2086 # names of packages and files
apt-get install -q -y --no-install-recommends $needed $(find "$packages" -name 'tacho*.deb' ! -name '*-dbgsym_*') \
  >tests.log 2>&1 || { cat tests.log; fail "apt-get install of all packages failed"; }
for test in $(sed -n 's/^Tests: //p' "$own_tests/control"); do
  AUTOPKGTEST_TMP=$(mktemp -d)
  export AUTOPKGTEST_TMP
  "$own_tests/$test" >"$test.log" 2>&1 || { cat "$test.log"; fail "debian/tests/$test failed"; }
  echo "debian/tests/$test passes"
done
