# Completion of specdec for fish. It asks the program what may stand in the place of the word at the cursor.
# For one shell: specdec completion fish | source
function __specdec_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program completion fish $words "$current" 2>/dev/null)
    or return
    set -l kind $lines[1]
    set -e lines[1]
    string join \n -- $lines
    if test "$kind" = files
        set -l cut (string match -r -- '^--[^=]*=' $current)
        for file in (__fish_complete_path (string replace -r -- '^--[^=]*=' '' $current))
            printf '%s%s\n' "$cut" $file
        end
    end
end
complete -c specdec -f -a '(__specdec_candidates)'
